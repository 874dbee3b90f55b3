// Who called, and how it is known.
import type { Caller } from "../api";
import { place } from "../format";
import { EditorLink } from "../stacks/source";

export function CallerText({ caller }: { caller: Caller }) {
  return (
    <span class="caller">
      <code>{caller.function}</code> <EditorLink frame={caller}>{place(caller)}</EditorLink> <HowKnown exact={caller.exact} />
    </span>
  );
}

export function HowKnown({ exact }: { exact: boolean }) {
  return exact ? (
    <span class="badge exact" title="Written into the span when it started: the very line that called">
      exact
    </span>
  ) : (
    <span class="badge sampled" title="From samples: the application's frame nearest to the query in most of them">
      sampled
    </span>
  );
}

// What stands where an answer is not there: always a sentence and, where there is one, the next step.
import type { ComponentChildren } from "preact";
import type { Thin } from "../api";
import type { Answer } from "./answers";

export function Note({ kind = "info", children }: { kind?: "info" | "error"; children: ComponentChildren }) {
  return (
    <div class={`note ${kind}`} role={kind === "error" ? "alert" : "status"}>
      {children}
    </div>
  );
}

/** The children once there is data; before that why there is none. */
export function Wait<T>({ answer, what, children }: { answer: Answer<T>; what: string; children: (data: T) => ComponentChildren }) {
  if (answer.error) return <Note kind="error">{answer.error}</Note>;
  if (!answer.data) return <Note>Loading {what} …</Note>;
  return <div class={answer.loading ? "stale" : undefined} aria-busy={answer.loading}>{children(answer.data)}</div>;
}

const TITLES: Record<Thin["reason"], string> = {
  too_short: "Too short to be seen often",
  not_linked: "No samples of this span",
  still_arriving: "Profiles are still arriving",
  no_profile: "Not profiled",
  few_samples: "Few samples",
  no_timeline: "Samples without times",
};

export function ThinNote({ thin, children }: { thin: Thin; children?: ComponentChildren }) {
  return (
    <Note>
      <b>{TITLES[thin.reason]}.</b> {thin.text} {children}
    </Note>
  );
}

// Where time went: the same five parts, colours and patterns everywhere.
import type { OwnSplit, Split, State } from "../api";
import { duration, percent } from "../format";

export const STATES: State[] = ["running", "waiting", "ready", "blocked"];
export type Part = State | "children" | "not_sampled";

export const MEANING: Record<Part, string> = {
  running: "running: on a CPU",
  waiting: "waiting: suspended until something is done",
  ready: "ready: could run, but the event loop was busy with something else",
  blocked: "blocked: had the event loop, but its thread was off CPU (a blocking call)",
  children: "in spans below",
  not_sampled: "not sampled: nobody looked in that time",
};

export const PART_NAMES: Record<Part, string> = {
  running: "running",
  waiting: "waiting",
  ready: "ready",
  blocked: "blocked",
  children: "spans below",
  not_sampled: "not sampled",
};

export function parts(split: Split | OwnSplit): [Part, number][] {
  const all: [Part, number][] = STATES.map((state) => [state, split[`${state}_us`]]);
  if ("children_us" in split) all.push(["children", split.children_us]);
  all.push(["not_sampled", split.not_sampled_us]);
  return all;
}

export function total(split: Split | OwnSplit): number {
  return parts(split).reduce((sum, [, us]) => sum + us, 0);
}

export function spoken(split: Split | OwnSplit): string {
  const whole = total(split);
  return parts(split)
    .filter(([, us]) => us > 0)
    .map(([part, us]) => `${PART_NAMES[part]} ${percent(us, whole)}`)
    .join(", ");
}

/** `of` is the time that fills the whole width; by default what the parts add up to. */
export function SplitBar({ split, of }: { split: Split | OwnSplit; of?: number }) {
  const whole = of ?? total(split);
  return (
    <span class="split" role="img" aria-label={spoken(split)} title={explain(split)}>
      {parts(split).map(([part, us]) =>
        us > 0 && whole > 0 ? <i key={part} class={`fill-${part}`} style={{ width: `${(100 * us) / whole}%` }} /> : null,
      )}
    </span>
  );
}

function explain(split: Split | OwnSplit): string {
  const whole = total(split);
  return parts(split)
    .filter(([, us]) => us > 0)
    .map(([part, us]) => `${PART_NAMES[part]} ${duration(us)} (${percent(us, whole)})`)
    .join("\n");
}

interface LegendProps {
  split: Split | OwnSplit;
  chosen: string[]; // states; none chosen means all
  choose: (state: State) => void;
}

/** The parts with their numbers; each state is a button that keeps only its stacks. */
export function SplitLegend({ split, chosen, choose }: LegendProps) {
  const whole = total(split);
  return (
    <span class="legend">
      {parts(split).map(([part, us]) => {
        const state = STATES.find((known) => known === part);
        const text = (
          <>
            <i class={`swatch fill-${part}`} /> {PART_NAMES[part]} <b>{percent(us, whole)}</b>{" "}
            <span class="dim">{duration(us)}</span>
          </>
        );
        if (!state) return us > 0 ? <span key={part} class="part" title={MEANING[part]}>{text}</span> : null;
        const pressed = chosen.includes(state);
        return (
          <button key={part} class="part" title={`${MEANING[part]}. Click: only these stacks`} aria-pressed={pressed} onClick={() => choose(state)}>
            {text}
          </button>
        );
      })}
    </span>
  );
}

// What several answers are made of.

export type TraceId = string; // 32 digits
export type SpanId = string; // 16 digits
export type State = "running" | "waiting" | "ready" | "blocked";

/** Adds up to the span's duration, to the microsecond. */
export interface Split {
  running_us: number;
  waiting_us: number;
  ready_us: number; // could run, but the loop was busy with something else
  blocked_us: number; // had the loop, but its thread was off CPU
  not_sampled_us: number; // the remainder
}

/** Of the span itself: `children_us` is time in which only spans below it went on. Adds up to the duration, too. */
export interface OwnSplit extends Split {
  children_us: number;
}

/** Of all runs of a statement or an operation. */
export interface Durations {
  runs: number;
  errors: number;
  total_us: number;
  p50_us: number;
  p95_us: number;
  max_us: number;
}

/** Why there are no or few stacks, and what to do. Absent when there are enough. */
export interface Thin {
  reason: "too_short" | "not_linked" | "still_arriving" | "no_profile" | "few_samples" | "no_timeline";
  text: string; // a sentence or two for people
  runs_of_operation: number; // spans of the same service and name that are stored
  runs_with_samples: number; // of these
}

export interface Frame {
  function: string; // qualified name
  file: string;
  line: number;
  first_line: number; // of the def; 0 when unknown
  kind: "own" | "installed" | "standard" | "none"; // none: a synthetic frame such as <frames omitted>
}

export interface Caller extends Frame {
  exact: boolean; // from the span's code.* attributes; else the most frequent place in its samples
}

/** Every error: an HTTP status of 400 or more and this. */
export interface ApiError {
  error: string; // a sentence for people
}

// The same stacks as a tree, a table and a sandwich; two sides compared; sources and exports.
import type { Frame, SpanId, Split, Thin, TraceId } from "./shared";
import type { Holder } from "./traces";

// ---- GET /api/stacks: a flame tree

/** What to take: a trace with or without a span, an operation, a query, or everything that matches. */
export interface StackFilter {
  trace?: TraceId;
  span?: SpanId;
  scope?: "self" | "children" | "trace"; // of a span; default self
  operation?: string; // "service/name", with at: all, slow (p95+), fast (<= p50)
  at?: "all" | "slow" | "fast";
  query?: number;
  service?: string; // without trace, operation and query: all samples, also those without a span
  since_us?: number;
  until_us?: number;
  state?: string; // comma-separated states; default all
  from_us?: number; // of a trace: after its start, for a selection in the lanes
  to_us?: number;
  task?: string; // only this task
  /** elapsed (default): each moment of a trace counts once, shared by what went on side by side; task: each task counts
   *  in full. For a query, and without trace and operation, elapsed is the sum of all tasks and threads, as task is. */
  weight?: "elapsed" | "task" | "cpu";
  by?: "function" | "line"; // what is one node; default function
  invert?: "1"; // leaf first: callers
  find?: string; // regular expression on "function file:line"
  focus?: string; // keep only stacks with a match
  hide?: string; // leave matching frames out of stacks
  library?: "0"; // 0: leave out frames of installed packages and the standard library (the leaf is kept)
  recursion?: "0"; // 0: each function once in a stack, without what lies between two calls of it
  prune?: number; // share of the root below which nodes are left out; default 0.0005
}

export interface Stacks {
  total_us: number; // of the root
  duration_us: number; // of the scope; 0 when it has none
  samples: number;
  frames: [fn: string, file: string, first_line: number, kind: Frame["kind"]][];
  /** Nodes in pre-order, heaviest sibling first; one entry per node in each array. Node 0 is the root: frame -1. */
  nodes: {
    parent: number[]; // -1 for the root
    frame: number[]; // index into frames
    line: number[]; // the heaviest line
    total_us: number[];
    self_us: number[];
    running_us: number[]; // the four add up to total_us
    waiting_us: number[];
    ready_us: number[];
    blocked_us: number[];
    samples: number[];
    match: (0 | 1)[]; // of `find`
  };
  pruned: number; // nodes left out
  matches: { nodes: number; us: number; share: number }; // of `find`; stacks with a match, each once
  find_error: string | null; // not a regular expression: taken as text
  split: Split;
  thin: Thin | null;
}

// ---- GET /api/functions (StackFilter): the table, equal in content to the graph

export interface FunctionRow extends Frame {
  total_us: number; // stacks with the function, recursion once
  self_us: number;
  running_us: number;
  waiting_us: number;
  ready_us: number;
  blocked_us: number;
  samples: number;
  margin: number; // of total_us, ± as a share: 2/sqrt(samples), at most 1
  match: boolean;
}
export interface Functions {
  total_us: number;
  samples: number;
  rows: FunctionRow[]; // most self time first, at most 2000
}

// ---- GET /api/sandwich (StackFilter & {function, file}): one function

export interface Sandwich {
  row: FunctionRow;
  callers: Omit<Stacks, "thin">; // leaf first, from the function upwards
  callees: Omit<Stacks, "thin">; // from the function downwards
  traces: { trace_id: TraceId; operation: string; us: number }[]; // with it, most time first, at most 20
  lines: [line: number, us: number][]; // of the function, most first
}

// ---- GET /api/compare?a=&b=
// A selector: span:TRACE:SPAN, trace:TRACE, query:ID, op:SERVICE/NAME@all, @slow (p95 and more), @fast (p50 and less).

export interface Side {
  selector: string;
  label: string;
  runs: number;
  mean_us: number;
  split: Split; // per run
  samples: number;
  queries_per_run: number;
}
export interface Comparison {
  a: Side;
  b: Side;
  frames: Stacks["frames"];
  /** One tree of both; times per run. */
  nodes: {
    parent: number[];
    frame: number[];
    line: number[];
    a_us: number[];
    b_us: number[];
    noise: (0 | 1)[]; // the difference is within what so few samples tell
  };
  functions: { frame: number; line: number; a_us: number; b_us: number; a_self_us: number; b_self_us: number; noise: boolean }[];
  attributes: { key: string; value: string; a_share: number; b_share: number }[]; // over-represented in b, at most 20
  holders: { a: Holder[]; b: Holder[] }; // only for spans and traces
}

// ---- GET /api/source?file=&line=&context=20

export interface Source {
  file: string;
  first: number; // number of the first line
  lines: string[];
}

// ---- GET /api/export?format=&trace=&span=&scope=&...: a download
// format: otlp, otlp-json, pprof, speedscope, collapsed, chrome, gecko, html. Takes StackFilter's selection (not find/hide).
// GET /api/export/extent (the same selection): whether one file holds all of it

export interface Extent {
  cut: boolean; // there is more: the newest are in the file
  most_traces: number;
  most_samples: number;
}

// GET /api/markdown (StackFilter): text/markdown under 4 kB.
// POST /api/import: a recording or an OTLP file as body -> {spans, samples}. DELETE /api/data: everything stored.

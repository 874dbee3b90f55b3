// The viewer's JSON API, as web/API.md describes it. Every `_us` is a whole number of microseconds: times of day since
// 1970 (below 2^53), everything else a duration. Ids are lower-case hexadecimal, as in OTLP/JSON. All strings are text,
// whoever sent them: never put one into markup.

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

// ---- GET /api/status

export interface Status {
  version: string;
  now_us: number;
  revision: number; // grows with every change of what is stored
  spans: number;
  traces: number;
  samples: number; // observations
  linked_samples: number;
  size_bytes: number;
  limit_bytes: number;
  retain_us: number;
  database: string; // a path, or ":memory:"
  receivers: { grpc: string | null; http: string | null };
  rejected: { spans: number; samples: number; requests: number };
  notes: string[]; // said once each: metrics dropped, gRPC not available, …
  source_root: string;
  editor: string | null; // a URL with {file} and {line}: vscode://file/{file}:{line}
  services: string[];
}

// ---- GET /api/events: server-sent events; `event: change`, data: Change

export interface Change {
  revision: number;
  traces: number;
  newest_us: number; // begin of the newest trace
}

// ---- GET /api/traces

/** Query parameters; all optional. */
export interface TraceFilter {
  service?: string;
  operation?: string; // name of the trace's first span
  text?: string; // in names of spans and in statements; case does not count
  min_us?: number;
  max_us?: number;
  since_us?: number; // time of day; begin of the trace
  until_us?: number;
  error?: "1";
  attribute?: string; // key:value, of any span; may be given several times
  function?: string; // traces with a sample on it; with `file` of that file only
  file?: string;
  query?: number; // traces with this statement
  sort?: "-duration" | "duration" | "-start" | "start" | "-spans" | "-queries";
  limit?: number; // 100; at most 10000
  offset?: number;
}

export interface TraceRow {
  trace_id: TraceId;
  root_span_id: SpanId;
  operation: string;
  service: string;
  start_us: number;
  duration_us: number;
  spans: number;
  errors: number;
  queries: number;
  samples: number;
  split: Split | null; // of the root with all below it; null: not worked out yet
  n_plus_one: NPlusOne | null; // the worst one of this trace
  complete: boolean; // false: the root's parent has not arrived
}

export interface NPlusOne {
  query_id: number;
  statement: string;
  runs: number; // under one parent span
  parent_span_id: SpanId;
  trace_id: TraceId;
}

export interface TraceList {
  revision: number;
  total: number; // that match, not only those listed
  traces: TraceRow[];
  /** Up to 5000 of the traces that match, the slowest among them; one entry per trace in each array. */
  scatter: { start_us: number[]; duration_us: number[]; error: (0 | 1)[]; trace_id: TraceId[] };
  operations: Operation[]; // of what matches all filters but `operation`; most time first, at most 200
}

export interface Operation {
  service: string;
  name: string;
  runs: number;
  errors: number;
  total_us: number;
  p50_us: number;
  p95_us: number;
  max_us: number;
}

// ---- GET /api/operations (service, since_us, until_us) -> Operation[]

// ---- GET /api/traces/{trace_id}

export interface Trace {
  trace_id: TraceId;
  start_us: number; // time of day
  duration_us: number; // until the last end of a span
  services: string[];
  spans: Span[]; // parents before their children, siblings by start: the order of a waterfall
  samples: number;
  period_us: number; // typical time between two looks at a task; 0 without samples
  timeline: boolean; // false: samples without times; splits are then shares, and there are no lanes
  critical_path: number[]; // indices of spans, in order of time
  n_plus_one: NPlusOne[];
}

export interface Span {
  span_id: SpanId;
  parent: number; // index into spans; -1 for a root
  depth: number;
  name: string;
  service: string;
  kind: "unspecified" | "internal" | "server" | "client" | "producer" | "consumer";
  start_us: number; // after the trace's start
  duration_us: number;
  error: boolean;
  statement: string | null;
  query_id: number | null;
  caller: Caller | null; // of queries and other client spans
  samples: number; // linked to this very span
  split: Split; // with everything below it, parallel tasks shared out: each moment counts once
  own: OwnSplit; // of this very span
  cpu_us: number; // with everything below it
}

// ---- GET /api/traces/{trace_id}/spans/{span_id}

export interface SpanDetail extends Span {
  trace_id: TraceId;
  trace_state: string;
  status_message: string;
  attributes: Record<string, unknown>;
  resource: Record<string, unknown>;
  scope: string; // name and version of the instrumentation
  events: { name: string; at_us: number; attributes: Record<string, unknown> }[]; // after the trace's start
  links: { trace_id: TraceId; span_id: SpanId }[];
  stacktrace: string | null; // code.stacktrace
  thin: Thin | null;
  same_operation: { runs: number; p50_us: number; p95_us: number; max_us: number };
}

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
   *  in full. For a query, and without trace and operation, both are the same. */
  weight?: "elapsed" | "task" | "cpu";
  by?: "function" | "line"; // what is one node; default function
  invert?: "1"; // leaf first: callers
  find?: string; // regular expression on "function file:line"
  focus?: string; // keep only stacks with a match
  hide?: string; // leave matching frames out of stacks
  library?: "0"; // 0: leave out frames of installed packages and the standard library (the leaf is kept)
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

// ---- GET /api/queries (service, since_us, until_us, text, operation, sort, limit)

export interface Query {
  query_id: number;
  statement: string; // normalised: literals are ?
  system: string; // of the database, as the span says
  runs: number;
  errors: number;
  total_us: number;
  p50_us: number;
  p95_us: number;
  max_us: number;
  n_plus_one: NPlusOne | null; // the most runs under one parent, from 5 on
  callers: { caller: Caller; runs: number }[]; // the most frequent 3
  n_callers: number;
  runs_exact: number; // caller known from code.*
  runs_sampled: number; // else from samples
  runs_unknown: number;
  operations: { service: string; name: string; runs: number }[]; // requests that run it, the most frequent 3
}
export interface Queries {
  total: number;
  queries: Query[]; // sort: -total (default), -runs, -p50, -p95, -max
}

// ---- GET /api/queries/{query_id}

export interface QueryDetail extends Query {
  example: string; // as it was sent
  all_callers: QueryCaller[];
  slowest: QueryRun[]; // 20
  all_operations: { service: string; name: string; runs: number; total_us: number }[];
  histogram: { upto_us: number; runs: number }[]; // powers of two
}
export interface QueryCaller {
  caller: Caller;
  runs: number;
  total_us: number;
  p95_us: number;
  operations: { service: string; name: string; runs: number }[];
  slowest: { trace_id: TraceId; span_id: SpanId; duration_us: number };
}
export interface QueryRun {
  trace_id: TraceId;
  span_id: SpanId;
  start_us: number;
  duration_us: number;
  operation: string;
  service: string;
  caller: Caller | null;
}

// ---- GET /api/traces/{trace_id}/lanes

export interface Lanes {
  duration_us: number;
  timeline: boolean;
  lanes: Lane[]; // awaiting tasks before the tasks they wait for
  holders: Holders; // of the whole trace
  stacks: number[][]; // root first, indices into frames
  frames: [fn: string, file: string, line: number, first_line: number, kind: Frame["kind"]][];
}
export interface Lane {
  name: string; // the task's name, or the thread's
  is_task: boolean;
  thread: string;
  service: string;
  process: string;
  depth: number; // 0, or one more than the lane that waits for it
  /** Who waits for this task, from the stacks: the first frames of its stacks are those of the other task. */
  awaited_by: { lane: number; start_us: number; end_us: number; function: string; file: string; line: number } | null;
  pieces: {
    start_us: number[]; // after the trace's start
    end_us: number[];
    state: (State | "children")[]; // children: waits for tasks only, seen in these
    span: number[]; // index into Trace.spans; -1 for none
    stack: number[]; // index into stacks, -1 for state children
  };
}

// ---- GET /api/holders?trace=&span=: who held the loop while these tasks were ready

export interface Holders {
  ready_us: number; // in which something of the scope was ready; each moment once
  unexplained_us: number; // of it, in which nobody was seen to run
  holders: Holder[]; // the longest first
  pieces: { start_us: number[]; end_us: number[]; holder: number[] }; // the loop's own lane, after the trace's start
}
export interface Holder {
  us: number;
  share: number; // of ready_us
  state: "running" | "blocked"; // the longer one
  task: string;
  thread: string;
  caller: Frame | null; // the application's own frame nearest to the leaf
  leaf: Frame | null;
  trace_id: TraceId | null; // whose work it was; null: of no span
  span_id: SpanId | null;
  operation: string; // of that trace
  span_name: string;
  same_trace: boolean;
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
// GET /api/markdown (StackFilter): text/markdown under 4 kB.
// POST /api/import: a recording or an OTLP file as body -> {spans, samples}. DELETE /api/data: everything stored.

/** Every error: an HTTP status of 400 or more and this. */
export interface ApiError {
  error: string; // a sentence for people
}

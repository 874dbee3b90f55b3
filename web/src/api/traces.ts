// Status, traces and operations, one trace with its spans, its lanes, and who held the loop.
import type { Caller, Durations, Frame, OwnSplit, SpanId, Split, State, Thin, TraceId } from "./shared";

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

export interface Operation extends Durations {
  service: string;
  name: string;
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
  name: string; // the task's name; else the span's, or the thread's
  /** span: what was seen under one span, as its samples do not name the task. parent: a span that was never seen itself
   *  while several tasks below it were; it has pieces of state children alone. */
  kind: "task" | "thread" | "span" | "parent";
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

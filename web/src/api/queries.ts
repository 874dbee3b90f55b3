// Slow queries and who asked for them.
import type { Caller, Durations, SpanId, TraceId } from "./shared";
import type { NPlusOne } from "./traces";

// ---- GET /api/queries (service, since_us, until_us, text, operation, sort, limit)

export interface Query extends Durations {
  query_id: number;
  statement: string; // normalised: literals are ?
  system: string; // of the database, as the span says
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
  since_us: number | null; // runs before it are left out: there are more than 200 000
  queries: Query[]; // sort: -total (default), -runs, -p50, -p95, -max
}

// ---- GET /api/queries/{query_id}

export interface QueryDetail extends Query {
  older_runs: number; // left out: everything here is of the newest 50 000 runs
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

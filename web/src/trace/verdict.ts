// Why a trace was slow, in the order of how much time it explains.
import type { Caller, Holder, Holders, Span, State, Trace } from "../api";

export interface Finding {
  kind: "query" | "call" | "held" | State;
  us: number; // of the trace's duration; parallel work counts once
  span: number; // index of the span to look at
  runs: number;
  name: string;
  caller: Caller | null;
  repeated: boolean; // many runs of one query under one parent
  holder: Holder | null;
}

const LEAST_SHARE = 0.05; // of the trace, to be said at all
const MOST_FINDINGS = 4;

/** Length of the union of intervals. */
export function union(intervals: [number, number][]): number {
  let sum = 0;
  let reached = -Infinity;
  for (const [start, end] of [...intervals].sort((a, b) => a[0] - b[0])) {
    sum += Math.max(0, end - Math.max(start, reached));
    reached = Math.max(reached, end);
  }
  return sum;
}

function isCall(span: Span): boolean {
  return span.query_id !== null || span.kind === "client" || span.kind === "producer";
}

/** Spans that ask something of another system, the same question together. */
function calls(trace: Trace): Finding[] {
  const groups = new Map<string, number[]>();
  trace.spans.forEach((span, index) => {
    if (!isCall(span)) return;
    const key = span.query_id !== null ? `query ${span.query_id}` : `${span.service} ${span.name} ${span.caller?.function ?? ""}`;
    groups.set(key, [...(groups.get(key) ?? []), index]);
  });
  return [...groups.values()].map((members) => {
    const spans = members.map((index) => trace.spans[index]!);
    const longest = members.reduce((best, index) => (trace.spans[index]!.duration_us > trace.spans[best]!.duration_us ? index : best));
    const span = trace.spans[longest]!;
    return {
      kind: span.query_id === null ? "call" : "query",
      us: union(spans.map((one) => [one.start_us, one.start_us + one.duration_us])),
      span: longest,
      runs: members.length,
      name: span.statement ?? span.name,
      caller: span.caller ?? spans.find((one) => one.caller)?.caller ?? null,
      repeated: trace.n_plus_one.some((one) => one.query_id === span.query_id),
      holder: null,
    };
  });
}

/** The span in which most time of a state passed, of the span itself. */
function mostOf(trace: Trace, state: State, wanted: (span: Span) => boolean): Finding | null {
  let best = -1;
  let us = 0;
  trace.spans.forEach((span, index) => {
    const own = span.own[`${state}_us`];
    if (wanted(span) && own > us) [best, us] = [index, own];
  });
  const span = trace.spans[best];
  if (!span) return null;
  return { kind: state, us, span: best, runs: 1, name: span.name, caller: null, repeated: false, holder: null };
}

function held(trace: Trace, holders: Holders | null): Finding | null {
  const holder = holders?.holders[0];
  if (!holder) return mostOf(trace, "ready", () => true);
  const waiting = mostOf(trace, "ready", () => true);
  return {
    kind: "held",
    us: holder.us,
    span: waiting?.span ?? 0,
    runs: 1,
    name: holder.span_name || holder.task || holder.thread,
    caller: null,
    repeated: false,
    holder,
  };
}

export function findings(trace: Trace, holders: Holders | null): Finding[] {
  const all = [
    ...calls(trace),
    held(trace, holders),
    mostOf(trace, "running", () => true),
    mostOf(trace, "blocked", () => true),
    mostOf(trace, "waiting", (span) => !isCall(span)),
  ];
  return all
    .filter((one): one is Finding => one !== null && one.us >= LEAST_SHARE * trace.duration_us)
    .sort((a, b) => b.us - a.us)
    .slice(0, MOST_FINDINGS);
}

/** What to show first: where most time is explained, else the span with most time of its own. */
export function firstSpan(trace: Trace): number {
  const first = findings(trace, null)[0];
  if (first) return first.span;
  const own = trace.spans.map((span) => span.duration_us - span.own.children_us);
  return own.indexOf(Math.max(...own, 0));
}

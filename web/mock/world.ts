// A small world written by hand: one slow request with many queries, one that holds the loop, one whose names attack.
import type { Caller, Holders, Lanes, Operation, QueryDetail, Span, Split, Trace, TraceRow } from "../src/api";
import { HOSTILE_SAMPLES, ORDER_SAMPLES, PLACES, type Sample } from "./stacks.ts";

export const BEGIN_US = 1_796_000_000_000_000;
export const id = (n: number): string => n.toString(16).padStart(32, "0");
const spanId = (n: number): string => n.toString(16).padStart(16, "0");
export const ATTACK = "<img src=x onerror=window.hacked=1>";

const callerAt = (place: (typeof PLACES)[keyof typeof PLACES], exact: boolean): Caller => {
  const [[name, file, first, kind], line] = place;
  return { function: name, file, line, first_line: first, kind, exact };
};
const CALLER = callerAt(PLACES.fetchLines, true);

const split = (parts: Partial<Split>, duration: number): Split => {
  const whole = { running_us: 0, waiting_us: 0, ready_us: 0, blocked_us: 0, ...parts };
  return { ...whole, not_sampled_us: duration - whole.running_us - whole.waiting_us - whole.ready_us - whole.blocked_us };
};

function span(n: number, parent: number, depth: number, name: string, start: number, duration: number, parts: Partial<Split> = {}, children = 0, more: Partial<Span> = {}): Span {
  const whole = split(parts, duration);
  const own = { ...split(children > 0 ? {} : parts, duration - children), children_us: children };
  return {
    span_id: spanId(n), parent, depth, name, service: "shop", kind: "internal", start_us: start, duration_us: duration, error: false,
    statement: null, query_id: null, caller: null, samples: Math.round((duration - whole.not_sampled_us) / 10_000), split: whole, own, cpu_us: 0, ...more,
  };
}

const STATEMENT = "SELECT * FROM lines WHERE order_id = ?";
const RUNS = 17;

function orderTrace(): Trace {
  const spans = [
    span(1, -1, 0, "GET /orders/{id}", 0, 1_840_000, { running_us: 200_000, waiting_us: 980_000, ready_us: 330_000, blocked_us: 38_000 }, 1_240_000, { kind: "server" }),
    span(2, 0, 1, "auth.verify", 4_000, 38_000, { blocked_us: 38_000 }),
    span(3, 0, 1, "load_order", 60_000, 1_200_000, { running_us: 100_000, waiting_us: 980_000 }, 1_020_000),
  ];
  spans[0]!.own.ready_us = 330_000;
  spans[0]!.own.running_us = 100_000;
  spans[0]!.own.not_sampled_us = 170_000;
  for (let run = 0; run < RUNS; run++) {
    const query = span(10 + run, 2, 2, "SELECT", 90_000 + run * 68_000, 60_000, { waiting_us: 57_600, running_us: 2_400 });
    spans.push({ ...query, kind: "client", statement: STATEMENT, query_id: 7, caller: CALLER });
  }
  return {
    trace_id: id(1), start_us: BEGIN_US, duration_us: 1_840_000, services: ["shop"], spans, samples: 155, period_us: 10_000, timeline: true,
    critical_path: [0, 2, ...spans.keys()].filter((index, at, all) => index !== 1 && all.indexOf(index) === at),
    n_plus_one: [{ query_id: 7, statement: STATEMENT, runs: RUNS, parent_span_id: spanId(3), trace_id: id(1) }],
  };
}

function checkoutTrace(): Trace {
  const spans = [
    span(50, -1, 0, "POST /checkout", 0, 1_210_000, { running_us: 700_000, waiting_us: 400_000 }, 900_000, { kind: "server" }),
    span(51, 0, 1, "pdf.render", 100_000, 700_000, { running_us: 700_000 }),
    span(52, 0, 1, "UPDATE", 850_000, 3_000, {}, 0, { kind: "client", statement: "UPDATE stock SET n = n - ? WHERE id = ?", query_id: 8 }),
  ];
  return { trace_id: id(2), start_us: BEGIN_US + 2_000_000, duration_us: 1_210_000, services: ["shop"], spans, samples: 110, period_us: 10_000, timeline: true, critical_path: [0, 1], n_plus_one: [] };
}

function hostileTrace(): Trace {
  const spans = [span(60, -1, 0, ATTACK, 0, 100_000, { running_us: 90_000 }, 0, { kind: "client", statement: ATTACK, query_id: 9, service: ATTACK, caller: callerAt(PLACES.hostile, false) })];
  return { trace_id: id(3), start_us: BEGIN_US + 4_000_000, duration_us: 100_000, services: [ATTACK], spans, samples: 9, period_us: 10_000, timeline: false, critical_path: [0], n_plus_one: [] };
}

const MANY = 5000;

/** As large as traces are said to get; nobody sampled it. */
function largeTrace(): Trace {
  const spans = [span(100_000, -1, 0, "batch", 0, 1_000_000, {}, 1_000_000)];
  for (let i = 1; i < MANY; i++) spans.push(span(100_000 + i, 0, 1, `step ${i}`, i * 190, 180));
  return { trace_id: id(4), start_us: BEGIN_US + 6_000_000, duration_us: 1_000_000, services: ["shop"], spans, samples: 0, period_us: 0, timeline: false, critical_path: [0], n_plus_one: [] };
}

export const TRACES: Trace[] = [orderTrace(), checkoutTrace(), hostileTrace(), largeTrace()];
export const SAMPLES: Record<string, Sample[]> = { [id(1)]: ORDER_SAMPLES, [id(3)]: HOSTILE_SAMPLES };
/** The samples of a trace, of one span, or of a span with all below it. */
export function samplesOf(trace: Trace, of: string | null, scope: string): Sample[] {
  const all = SAMPLES[trace.trace_id] ?? [];
  if (!of || scope === "trace") return all;
  const index = trace.spans.findIndex((one) => one.span_id === of);
  const self = trace.spans[index];
  const names: Record<string, string[]> = { "GET /orders/{id}": ["root"], [ATTACK]: ["root"], load_order: ["load"], "auth.verify": ["auth"], SELECT: ["query"] };
  const wanted = names[self?.name ?? ""] ?? [];
  if (scope === "children" && wanted[0] === "root") return all;
  if (scope === "children" && wanted[0] === "load") return all.filter((one) => one.span === "load" || one.span === "query");
  const runs = trace.spans.filter((one) => one.name === self?.name).length;
  return all.filter((one) => wanted.includes(one.span)).map((one) => ({ ...one, us: one.us / runs }));
}

export const HOLDERS: Holders = {
  ready_us: 330_000,
  unexplained_us: 20_000,
  holders: [
    {
      us: 310_000, share: 0.94, state: "running", task: "Task-90", thread: "MainThread", caller: callerAt(PLACES.render, false), leaf: callerAt(PLACES.render, false),
      trace_id: id(2), span_id: spanId(51), operation: "POST /checkout", span_name: "pdf.render", same_trace: false,
    },
  ],
  pieces: { start_us: [1_300_000], end_us: [1_610_000], holder: [0] },
};
export const NO_HOLDERS: Holders = { ready_us: 0, unexplained_us: 0, holders: [], pieces: { start_us: [], end_us: [], holder: [] } };

export const LANES: Lanes = {
  duration_us: 1_840_000,
  timeline: true,
  holders: HOLDERS,
  frames: [PLACES.getOrder, PLACES.fetch].map(([[name, file, first, kind], line]) => [name, file, line, first, kind]),
  stacks: [[0], [0, 1]],
  lanes: [
    {
      name: "Task-71", kind: "task", thread: "MainThread", service: "shop", process: "1", depth: 0, awaited_by: null,
      pieces: { start_us: [0, 60_000, 1_280_000, 1_610_000], end_us: [50_000, 1_270_000, 1_610_000, 1_840_000], state: ["running", "children", "ready", "running"], span: [0, 0, 0, 0], stack: [0, -1, 0, 0] },
    },
    {
      name: "Task-80", kind: "task", thread: "MainThread", service: "shop", process: "1", depth: 1,
      awaited_by: { lane: 0, start_us: 60_000, end_us: 1_270_000, function: "load_order", file: "/srv/shop/orders/service.py", line: 61 },
      pieces: { start_us: [90_000], end_us: [1_246_000], state: ["waiting"], span: [3], stack: [1] },
    },
    {
      name: "GET /orders/{id}", kind: "parent", thread: "MainThread", service: "shop", process: "1", depth: 0, awaited_by: null,
      pieces: { start_us: [90_000], end_us: [1_246_000], state: ["children"], span: [0], stack: [-1] },
    },
  ],
};

export const ROWS: TraceRow[] = TRACES.map((trace) => ({
  trace_id: trace.trace_id, root_span_id: trace.spans[0]!.span_id, operation: trace.spans[0]!.name, service: trace.spans[0]!.service,
  start_us: trace.start_us, duration_us: trace.duration_us, spans: trace.spans.length, errors: 0, queries: trace.spans.filter((one) => one.query_id !== null).length,
  samples: trace.samples, split: trace.spans[0]!.split, n_plus_one: trace.n_plus_one[0] ?? null, complete: true,
}));

const FILLERS = 9_996;
for (let i = 0; i < FILLERS; i++) {
  const duration = 2_000 + ((i * 7919) % 90_000);
  ROWS.push({ ...ROWS[1]!, trace_id: id(1000 + i), operation: `GET /items/${i % 20}`, start_us: BEGIN_US + i * 1000, duration_us: duration, spans: 3, queries: 1, samples: 2, split: split({ waiting_us: duration / 2 }, duration), n_plus_one: null });
}

export const OPERATIONS: Operation[] = [
  { service: "shop", name: "GET /orders/{id}", runs: 602, errors: 3, total_us: 190_000_000, p50_us: 310_000, p95_us: 1_720_000, max_us: 1_840_000 },
  { service: "shop", name: "POST /checkout", runs: 90, errors: 0, total_us: 50_000_000, p50_us: 480_000, p95_us: 1_100_000, max_us: 1_210_000 },
];

export const QUERIES: QueryDetail[] = [
  {
    query_id: 7, statement: STATEMENT, system: "postgresql", runs: 6_120, errors: 0, total_us: 41_200_000, p50_us: 4_000, p95_us: 22_000, max_us: 1_100_000,
    n_plus_one: TRACES[0]!.n_plus_one[0]!, callers: [{ caller: CALLER, runs: 5_980 }, { caller: callerAt(PLACES.checkout, false), runs: 140 }], n_callers: 2,
    runs_exact: 5_980, runs_sampled: 140, runs_unknown: 0, operations: [{ service: "shop", name: "GET /orders/{id}", runs: 5_980 }],
    example: "SELECT * FROM lines WHERE order_id = 4711",
    older_runs: 0, all_callers: [
      { caller: CALLER, runs: 5_980, total_us: 38_000_000, p95_us: 22_000, operations: [{ service: "shop", name: "GET /orders/{id}", runs: 5_980 }], slowest: { trace_id: id(1), span_id: spanId(10), duration_us: 60_000 } },
      { caller: callerAt(PLACES.checkout, false), runs: 140, total_us: 3_200_000, p95_us: 30_000, operations: [{ service: "shop", name: "POST /checkout", runs: 140 }], slowest: { trace_id: id(2), span_id: spanId(52), duration_us: 3_000 } },
    ],
    slowest: [{ trace_id: id(1), span_id: spanId(10), start_us: BEGIN_US, duration_us: 60_000, operation: "GET /orders/{id}", service: "shop", caller: CALLER }],
    all_operations: [{ service: "shop", name: "GET /orders/{id}", runs: 5_980, total_us: 38_000_000 }],
    histogram: [{ upto_us: 4_096, runs: 3_100 }, { upto_us: 8_192, runs: 2_400 }, { upto_us: 65_536, runs: 620 }],
  },
  {
    query_id: 9, statement: ATTACK, system: ATTACK, runs: 1, errors: 0, total_us: 100_000, p50_us: 100_000, p95_us: 100_000, max_us: 100_000, n_plus_one: null,
    callers: [{ caller: callerAt(PLACES.hostile, false), runs: 1 }], n_callers: 1, runs_exact: 0, runs_sampled: 1, runs_unknown: 0, operations: [{ service: ATTACK, name: ATTACK, runs: 1 }],
    example: ATTACK, older_runs: 0, all_callers: [], slowest: [], all_operations: [], histogram: [{ upto_us: 131_072, runs: 1 }],
  },
];

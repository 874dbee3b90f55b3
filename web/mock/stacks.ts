// Samples written by hand, and the trees and tables that a server makes of them.
import type { FunctionRow, Functions, Sandwich, Split, Stacks, State, Thin } from "../src/api";

type FrameRow = Stacks["frames"][number];
type Place = [frame: FrameRow, line: number];
export interface Sample {
  span: string;
  state: State;
  us: number;
  stack: Place[]; // root first
}

const APP = "/srv/shop";
const SITE = "/srv/venv/lib/python3.12/site-packages";
const frame = (name: string, file: string, line: number, first: number, kind: FrameRow[3] = "own"): Place => [[name, file, first, kind], line];

export const PLACES = {
  main: frame("<module>", `${APP}/main.py`, 12, 1),
  asgi: frame("RequestResponseCycle.run_asgi", `${SITE}/uvicorn/protocols/http/h11_impl.py`, 411, 405, "installed"),
  route: frame("Route.handle", `${SITE}/starlette/routing.py`, 289, 270, "installed"),
  getOrder: frame("get_order", `${APP}/orders/api.py`, 41, 33),
  loadOrder: frame("load_order", `${APP}/orders/service.py`, 60, 55),
  fetchLines: frame("fetch_lines", `${APP}/orders/service.py`, 88, 80),
  fetch: frame("Connection.fetch", `${SITE}/asyncpg/connection.py`, 690, 670, "installed"),
  verify: frame("verify", `${APP}/auth.py`, 19, 10),
  dumps: frame("dumps", "/usr/lib/python3.12/json/__init__.py", 231, 183, "standard"),
  checkout: frame("checkout", `${APP}/checkout.py`, 30, 21),
  render: frame("render_pdf", `${APP}/pdf.py`, 112, 100),
  hostile: frame("<img src=x onerror=window.hacked=1>", `${APP}/<script>window.hacked=1</script>.py`, 3, 1),
} satisfies Record<string, Place>;

const entry = [PLACES.main, PLACES.asgi, PLACES.route];
const lines = [...entry, PLACES.getOrder, PLACES.loadOrder, PLACES.fetchLines];

/** Of GET /orders/{id}: what its spans were seen to do. */
export const ORDER_SAMPLES: Sample[] = [
  { span: "query", state: "waiting", us: 980_000, stack: [...lines, PLACES.fetch] },
  { span: "query", state: "running", us: 40_000, stack: [...lines, PLACES.fetch] },
  { span: "load", state: "running", us: 60_000, stack: [...entry, PLACES.getOrder, PLACES.loadOrder] },
  { span: "root", state: "ready", us: 330_000, stack: [...entry, PLACES.getOrder] },
  { span: "root", state: "running", us: 100_000, stack: [...entry, PLACES.getOrder, PLACES.dumps] },
  { span: "auth", state: "blocked", us: 38_000, stack: [...entry, PLACES.verify] },
];

export const HOSTILE_SAMPLES: Sample[] = [{ span: "root", state: "running", us: 90_000, stack: [...entry, PLACES.hostile] }];

const SAMPLE_US = 10_000;
const text = ([row, line]: Place) => `${row[0]} ${row[1]}:${line}`;
const same = (a: FrameRow, b: FrameRow) => a[0] === b[0] && a[1] === b[1];

function pattern(source: string): RegExp {
  try {
    return new RegExp(source);
  } catch {
    return new RegExp(source.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  }
}

/** What is left of samples under the filters of a request. */
export function chosen(samples: Sample[], query: URLSearchParams): Sample[] {
  const states = query.get("state")?.split(",");
  const focus = query.get("focus");
  const hide = query.get("hide");
  return samples
    .filter((sample) => !states || states.includes(sample.state))
    .filter((sample) => !focus || sample.stack.some((place) => pattern(focus).test(text(place))))
    .map((sample) => ({
      ...sample,
      stack: sample.stack.filter((place, i) => {
        if (hide && pattern(hide).test(text(place))) return false;
        return query.get("library") !== "0" || place[0][3] === "own" || i === sample.stack.length - 1;
      }),
    }))
    .map((sample) => (query.get("invert") ? { ...sample, stack: [...sample.stack].reverse() } : sample));
}

export function splitOf(samples: Sample[], duration: number): Split {
  const split: Split = { running_us: 0, waiting_us: 0, ready_us: 0, blocked_us: 0, not_sampled_us: duration };
  for (const { state, us } of samples) {
    split[`${state}_us`] += us;
    split.not_sampled_us -= us;
  }
  return split;
}

export function tree(samples: Sample[], query: URLSearchParams, duration: number): Stacks {
  const find = query.get("find");
  const frames: FrameRow[] = [];
  const nodes: Stacks["nodes"] = { parent: [], frame: [], line: [], total_us: [], self_us: [], running_us: [], waiting_us: [], ready_us: [], blocked_us: [], samples: [], match: [] };
  const add = (parent: number, place: Place | null, members: Sample[], depth: number): void => {
    const index = nodes.parent.length;
    let at = place ? frames.findIndex((row) => same(row, place[0])) : -1;
    if (place && at < 0) at = frames.push(place[0]) - 1;
    const sum = (of: Sample[]) => of.reduce((us, sample) => us + sample.us, 0);
    nodes.parent.push(parent);
    nodes.frame.push(at);
    nodes.line.push(place?.[1] ?? 0);
    nodes.total_us.push(sum(members));
    nodes.self_us.push(sum(members.filter((sample) => sample.stack.length === depth)));
    for (const state of ["running", "waiting", "ready", "blocked"] as const) nodes[`${state}_us`].push(sum(members.filter((sample) => sample.state === state)));
    nodes.samples.push(Math.round(sum(members) / SAMPLE_US));
    nodes.match.push(find && place && pattern(find).test(text(place)) ? 1 : 0);
    const below = new Map<string, Sample[]>();
    for (const sample of members) {
      const next = sample.stack[depth];
      if (next) below.set(text(next), [...(below.get(text(next)) ?? []), sample]);
    }
    for (const group of [...below.values()].sort((a, b) => sum(b) - sum(a))) add(index, group[0]!.stack[depth]!, group, depth + 1);
  };
  add(-1, null, samples, 0);
  const total = nodes.total_us[0]!;
  const matching = find ? samples.filter((sample) => sample.stack.some((place) => pattern(find).test(text(place)))) : [];
  const us = matching.reduce((sum, sample) => sum + sample.us, 0);
  return {
    total_us: total,
    duration_us: duration,
    samples: nodes.samples[0]!,
    frames,
    nodes,
    pruned: 0,
    matches: { nodes: nodes.match.filter(Boolean).length, us, share: total ? us / total : 0 },
    find_error: find && find.includes("(") && !find.includes(")") ? "missing ), unterminated subpattern" : null,
    split: splitOf(samples, Math.max(duration, total)),
    thin: thin(nodes.samples[0]!),
  };
}

const FEW_SAMPLES = 5;

/** Why there are no or few stacks, as the server says it. */
export function thin(samples: number): Thin | null {
  if (samples >= FEW_SAMPLES) return null;
  const [reason, text] =
    samples > 0
      ? (["few_samples", `Only ${samples} looks at this span (40 ms at one every 10 ms): shares are rough.`] as const)
      : (["too_short", "This span lasted 3 ms; a look is taken every 10 ms."] as const);
  const runs = "38 of 412 runs of this operation have stacks: the operation's profile has what was seen in all of its runs.";
  return { reason, text: `${text} ${runs}`, runs_of_operation: 412, runs_with_samples: 38 };
}

export function functions(samples: Sample[], query: URLSearchParams): Functions {
  const rows = new Map<string, FunctionRow>();
  const find = query.get("find");
  for (const sample of samples) {
    sample.stack.forEach((place, i) => {
      const [row, line] = place;
      const leaf = i === sample.stack.length - 1;
      const entryOf = rows.get(`${row[0]} ${row[1]}`) ?? {
        function: row[0], file: row[1], line, first_line: row[2], kind: row[3],
        total_us: 0, self_us: 0, running_us: 0, waiting_us: 0, ready_us: 0, blocked_us: 0, samples: 0, margin: 0,
        match: find !== null && pattern(find).test(text(place)),
      };
      entryOf.total_us += sample.us;
      if (leaf) entryOf.self_us += sample.us;
      entryOf[`${sample.state}_us`] += sample.us;
      entryOf.samples += Math.round(sample.us / SAMPLE_US);
      entryOf.margin = Math.min(1, 2 / Math.sqrt(entryOf.samples));
      rows.set(`${row[0]} ${row[1]}`, entryOf);
    });
  }
  const total = samples.reduce((sum, sample) => sum + sample.us, 0);
  return { total_us: total, samples: Math.round(total / SAMPLE_US), rows: [...rows.values()].sort((a, b) => b.self_us - a.self_us) };
}

export function sandwich(samples: Sample[], query: URLSearchParams): Sandwich | null {
  const [name, file] = [query.get("function"), query.get("file")];
  const row = functions(samples, query).rows.find((one) => one.function === name && one.file === file);
  if (!row) return null;
  const at = (sample: Sample) => sample.stack.findIndex(([frameRow]) => frameRow[0] === name && frameRow[1] === file);
  const members = samples.filter((sample) => at(sample) >= 0);
  const up = members.map((sample) => ({ ...sample, stack: sample.stack.slice(0, at(sample) + 1).reverse() }));
  const down = members.map((sample) => ({ ...sample, stack: sample.stack.slice(at(sample)) }));
  return {
    row,
    callers: tree(up, query, 0),
    callees: tree(down, query, 0),
    traces: [{ trace_id: "0".repeat(31) + "1", operation: "GET /orders/{id}", us: row.total_us }],
    lines: [[row.line, row.total_us]],
  };
}

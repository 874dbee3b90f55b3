// The API on hand-made data: for `npm run dev` and for the tests in a browser. It serves the built page as well.
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Comparison, Extent, SpanDetail, Status, TraceList } from "../src/api";
import { chosen, functions, type Sample, sandwich, splitOf, thin, tree } from "./stacks.ts";
import { ATTACK, BEGIN_US, HOLDERS, LANES, NO_HOLDERS, OPERATIONS, QUERIES, ROWS, samplesOf, TRACES } from "./world.ts";

const STATIC = new URL("../../otel_asyncprof/viewer/static/", import.meta.url);
const POLICY = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";
const TYPES: Record<string, string> = { js: "text/javascript", css: "text/css", svg: "image/svg+xml", html: "text/html; charset=utf-8", png: "image/png", woff2: "font/woff2" };

function status(): Status {
  return {
    version: "0.0.0", now_us: BEGIN_US + 60_000_000, revision: 1, spans: 5024, traces: ROWS.length, samples: 264, linked_samples: 264, size_bytes: 1_000_000, limit_bytes: 512_000_000,
    retain_us: 604_800_000_000, database: ":memory:", receivers: { grpc: "127.0.0.1:4317", http: "http://127.0.0.1:4318" }, rejected: { spans: 0, samples: 0, requests: 0 }, notes: [],
    source_root: "/srv", editor: "vscode://file/{file}:{line}", services: ["shop", ATTACK],
  };
}

function traces(query: URLSearchParams): TraceList {
  const [service, operation, text, least, most] = ["service", "operation", "text", "min_us", "max_us"].map((name) => query.get(name));
  const rows = ROWS.filter(
    (row) =>
      (!service || row.service === service) && (!operation || row.operation === operation) && (!text || row.operation.toLowerCase().includes(text.toLowerCase())) &&
      (!least || row.duration_us >= Number(least)) && (!most || row.duration_us <= Number(most)) && (!query.get("error") || row.errors > 0),
  ).sort((a, b) => (query.get("sort") === "-start" ? b.start_us - a.start_us : b.duration_us - a.duration_us));
  return {
    revision: 1, total: rows.length, traces: rows.slice(0, Number(query.get("limit") ?? 100)),
    scatter: { start_us: rows.map((row) => row.start_us), duration_us: rows.map((row) => row.duration_us), error: rows.map(() => 0), trace_id: rows.map((row) => row.trace_id) },
    operations: OPERATIONS,
  };
}

function detail(traceId: string, spanId: string): SpanDetail | null {
  const span = TRACES.find((one) => one.trace_id === traceId)?.spans.find((one) => one.span_id === spanId);
  if (!span) return null;
  return {
    ...span, trace_id: traceId, trace_state: "", status_message: "", attributes: { "http.route": ATTACK, "db.system": "postgresql" }, resource: { "service.name": "shop" }, scope: "driver 1.0",
    events: [], links: [], stacktrace: null, thin: thin(span.samples), same_operation: { runs: 602, p50_us: 310_000, p95_us: 1_720_000, max_us: 1_840_000 },
  };
}

function compare(query: URLSearchParams): Comparison {
  const all = samplesOf(TRACES[0]!, null, "trace");
  const tree_ = tree(all, query, 1_840_000);
  const side = (name: string, share: number) => ({
    selector: query.get(name)!, label: query.get(name)!, runs: 60, mean_us: 1_840_000 * share, split: splitOf(all.map((one) => ({ ...one, us: one.us * share })), 1_840_000 * share), samples: 155, queries_per_run: 17 * share,
  });
  const total = tree_.nodes.total_us;
  return {
    a: side("a", 0.25), b: side("b", 1), frames: tree_.frames,
    nodes: { parent: tree_.nodes.parent, frame: tree_.nodes.frame, line: tree_.nodes.line, a_us: total.map((us) => us / 4), b_us: total, noise: total.map((us) => (us < 50_000 ? 1 : 0)) },
    functions: tree_.frames.map((_, frame) => ({ frame, line: 1, a_us: 10_000, b_us: 10_000 + 50_000 * frame, a_self_us: 0, b_self_us: 0, noise: frame === 0 })),
    attributes: [{ key: "tenant", value: ATTACK, a_share: 0.08, b_share: 0.92 }],
    holders: { a: [], b: HOLDERS.holders },
  };
}

function samples(query: URLSearchParams): { of: Sample[]; duration: number } {
  const trace = TRACES.find((one) => one.trace_id === query.get("trace"));
  if (!trace) return { of: samplesOf(TRACES[0]!, null, "trace"), duration: 0 };
  const span = trace.spans.find((one) => one.span_id === query.get("span"));
  return { of: samplesOf(trace, query.get("span"), query.get("scope") ?? "self"), duration: span?.duration_us ?? trace.duration_us };
}

/** What the server would answer; null for nothing there. */
export function answer(path: string, query: URLSearchParams): unknown {
  const [, , what, one, , two] = path.split("/");
  const trace = TRACES.find((known) => known.trace_id === one);
  switch (what) {
    case "status":
      return status();
    case "traces":
      if (!one) return traces(query);
      if (path.endsWith("/lanes")) return one === TRACES[0]!.trace_id ? LANES : { ...LANES, timeline: false, lanes: [] };
      return two ? detail(one, two) : (trace ?? null);
    case "operations":
      return OPERATIONS;
    case "holders":
      return query.get("trace") === TRACES[0]!.trace_id ? HOLDERS : NO_HOLDERS;
    case "stacks": {
      const { of, duration } = samples(query);
      return tree(chosen(of, query), query, duration);
    }
    case "functions":
      return functions(chosen(samples(query).of, query), query);
    case "sandwich":
      return sandwich(chosen(samples(query).of, query), query);
    case "queries":
      return one ? (QUERIES.find((query_) => String(query_.query_id) === one) ?? null) : { total: QUERIES.length, since_us: null, queries: QUERIES.slice(0, Number(query.get("limit") ?? 100)) };
    case "compare":
      return compare(query);
    case "export":
      return { cut: !query.get("trace"), most_traces: 1000, most_samples: 20_000 } satisfies Extent;
    case "source":
      return { file: query.get("file"), first: Number(query.get("line")) - 1, lines: ["    # before", `    rows = await fetch("${ATTACK}")`, "    return rows"] };
    default:
      return null;
  }
}

export function serveMock(request: IncomingMessage, response: ServerResponse, next: () => void): void {
  const url = new URL(request.url ?? "/", "http://localhost");
  if (!url.pathname.startsWith("/api/")) return next();
  if (url.pathname === "/api/events") {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(": hello\n\n");
    return;
  }
  if (url.pathname === "/api/markdown" || url.pathname === "/api/export") {
    response.writeHead(200, { "Content-Type": "text/plain", ...(url.pathname === "/api/export" ? { "Content-Disposition": "attachment; filename=stacks.txt" } : {}) });
    response.end(`${url.pathname} ${url.searchParams}`);
    return;
  }
  const found = answer(url.pathname, url.searchParams);
  response.writeHead(found === null ? 404 : 200, { "Content-Type": "application/json" });
  response.end(JSON.stringify(found ?? { error: "There is no such thing." }));
}

async function servePage(path: string, response: ServerResponse): Promise<void> {
  const name = /^\/(speedscope\/)?[\w.-]+\.(js|css|svg|png|woff2|html)$/.test(path) ? path.slice(1) : "index.html";
  const body = await readFile(new URL(name, STATIC));
  response.writeHead(200, { "Content-Type": TYPES[name.split(".").at(-1)!]!, "Content-Security-Policy": name.startsWith("speedscope/") ? `${POLICY}; style-src 'self' 'unsafe-inline'` : POLICY });
  response.end(body);
}

/** A server of its own on a free port, with the built page under the policy of the real one. */
export async function serve(): Promise<{ url: string; close: () => void }> {
  const server: Server = createServer((request, response) => {
    serveMock(request, response, () => void servePage(new URL(request.url ?? "/", "http://localhost").pathname, response));
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

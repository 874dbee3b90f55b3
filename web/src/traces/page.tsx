// The first page: the slowest traces, and the slowest queries with their callers.
import { useEffect, useState } from "preact/hooks";
import type { Queries, TraceList, TraceRow } from "../api";
import { count, dateAndTime, duration, plural, timeOfDay } from "../format";
import { api, change, status, useAnswer } from "../ui/answers";
import { CallerText } from "../queries/caller";
import { useKeys } from "../ui/keys";
import { mark, setMark } from "../ui/mark";
import { SplitBar } from "../ui/split";
import { Note, Wait } from "../ui/state";
import { say } from "../ui/toast";
import { go, href, set } from "../ui/url";
import { VirtualList } from "../ui/virtual";
import { Filters, traceFilter } from "./filters";
import { Scatter } from "./scatter";

const ROW = 32;
const HIGHEST = 440;
const LIMIT = 10_000;
const QUERIES_SHOWN = 3;

export function TracesPage() {
  const [shown, setShown] = useState(0); // grows when someone asks for the news
  const [openedAt] = useState(Date.now() * 1000);
  const filter = traceFilter(status.value?.now_us ?? openedAt);
  const url = api("traces", { ...filter, limit: LIMIT });
  const answer = useAnswer<TraceList>(url, shown);
  const queries = useAnswer<Queries>(api("queries", { limit: QUERIES_SHOWN, service: filter.service, operation: filter.operation, since_us: filter.since_us }), shown);
  const list = answer.data;
  const news = change.value && list && change.value.revision > list.revision ? change.value : null;
  const empty = list?.total === 0;
  useEffect(() => {
    if (news && empty) setShown(news.revision); // nothing on the page that could move
  }, [news, empty]);
  const more = news && status.value ? Math.max(0, news.traces - status.value.traces) : 0;
  return (
    <div class="page traces">
      <h1 class="hidden">Traces</h1>
      <Filters operations={list?.operations ?? []} />
      <Wait answer={answer} what="traces">
        {(data) => (data.total === 0 ? <Empty /> : <List list={data} />)}
      </Wait>
      {news && !empty && (
        <button class="pill" onClick={() => setShown(news.revision)}>
          {more > 0 ? `${plural(more, "new trace")} – show` : "Something new – show"}
        </button>
      )}
      {queries.data && queries.data.queries.length > 0 && <SlowQueries queries={queries.data} />}
    </div>
  );
}

function List({ list }: { list: TraceList }) {
  const [cursor, setCursor] = useState(-1);
  const rows = list.traces;
  const current = rows[cursor];
  const step = (by: number) => setCursor((before) => Math.min(rows.length - 1, Math.max(0, before + by)));
  const select = (row: TraceRow) => ({ selector: `trace:${row.trace_id}`, label: `${row.operation} ${duration(row.duration_us)}` });
  const keys = {
    j: () => step(1),
    k: () => step(-1),
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    PageDown: () => step(15),
    PageUp: () => step(-15),
    Home: () => setCursor(0),
    End: () => setCursor(rows.length - 1),
    Enter: () => current && go(`/trace/${current.trace_id}`),
    m: () => {
      if (!current) return;
      setMark(select(current));
      say(`A is ${current.operation}`);
    },
    M: () => current && mark.value && go(href("/compare", { a: mark.value.selector, b: select(current).selector })),
  };
  useKeys(keys);
  const most = rows.reduce((longest, row) => Math.max(longest, row.duration_us), 1);
  return (
    <>
      <Scatter points={list.scatter} selected={current?.trace_id ?? ""} />
      <div class="trace-grid head" aria-hidden="true">
        <span class="n">duration</span>
        <span>operation</span>
        <span>where the time went</span>
        <span class="n">spans</span>
        <span class="n">queries</span>
        <span class="n">samples</span>
        <span class="n">at</span>
      </div>
      <VirtualList count={rows.length} rowHeight={ROW} cursor={cursor} label="Traces" role="grid" highest={HIGHEST} class="trace-list">
        {(index, top) => <Row key={rows[index]!.trace_id} row={rows[index]!} index={index} top={top} most={most} chosen={index === cursor} />}
      </VirtualList>
      <p class="dim small">
        {plural(list.total, "trace")} match{list.total === 1 ? "es" : ""}
        {list.total > rows.length && `; the first ${count(rows.length)} are listed`}. The bar's length is the duration.
      </p>
    </>
  );
}

function Row({ row, index, top, most, chosen }: { row: TraceRow; index: number; top: number; most: number; chosen: boolean }) {
  const hint = row.n_plus_one;
  return (
    <div
      class="trace-grid row"
      role="row"
      aria-rowindex={index + 1}
      aria-selected={chosen}
      style={{ top: `${top}px` }}
      onClick={(event) => (event.target as Element).closest("a") || go(`/trace/${row.trace_id}`)}
    >
      <span role="gridcell" class="n strong">{duration(row.duration_us)}</span>
      <span role="gridcell" class="clip" title={`${row.service} · ${row.operation}`}>
        <a href={`/trace/${row.trace_id}`} tabIndex={-1}>{row.operation}</a> <span class="dim">{row.service}</span>
        {row.errors > 0 && <span class="bad" title={plural(row.errors, "error")}> ▲ {plural(row.errors, "error")}</span>}
        {hint && <span class="hint" title={hint.statement}> {hint.runs}× the same query</span>}
        {!row.complete && <span class="dim" title="The first span has not arrived yet"> (incomplete)</span>}
      </span>
      <span role="gridcell">
        <span class="bar-room" style={{ width: `${Math.max(2, (100 * row.duration_us) / most)}%` }}>
          {row.split ? <SplitBar split={row.split} /> : <span class="dim" title="Not worked out yet">…</span>}
        </span>
      </span>
      <span role="gridcell" class="n">{count(row.spans)}</span>
      <span role="gridcell" class="n">{row.queries > 0 ? count(row.queries) : ""}</span>
      <span role="gridcell" class="n">{row.samples > 0 ? count(row.samples) : <span class="dim">none</span>}</span>
      <span role="gridcell" class="n dim" title={dateAndTime(row.start_us)}>{timeOfDay(row.start_us)}</span>
    </div>
  );
}

function SlowQueries({ queries }: { queries: Queries }) {
  return (
    <section aria-label="Slow queries">
      <h2>
        Slow queries <a class="small" href="/queries">all {queries.total}</a>
      </h2>
      <ul class="plain">
        {queries.queries.map((query) => (
          <li key={query.query_id} class="query-line">
            <a href={`/query/${query.query_id}`}>
              <code class="clip">{query.statement}</code>
            </a>
            <span class="nowrap">
              <b>{duration(query.total_us)}</b> in {plural(query.runs, "run")}, p95 {duration(query.p95_us)}
            </span>
            <span class="clip">{query.callers[0] ? <CallerText caller={query.callers[0].caller} /> : <span class="dim">caller not known</span>}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Empty() {
  const now = status.value;
  if (now && now.traces > 0) {
    return (
      <Note>
        No trace matches these filters; {plural(now.traces, "trace")} {now.traces === 1 ? "is" : "are"} stored.{" "}
        <button onClick={() => set({ service: "", op: "", q: "", min: "", max: "", since: "", from: "", to: "", err: "", attr: "", fn: "", file: "", query: "" })}>Clear filters</button>
      </Note>
    );
  }
  const http = now?.receivers.http ?? "http://127.0.0.1:4318";
  return (
    <Note>
      <p>
        <b>Nothing has arrived yet.</b> This page fills itself as soon as something does. Run a program with the profiler and point it here:
      </p>
      <pre>otel-asyncprof run --view app.py</pre>
      <p>or, for one that is started otherwise:</p>
      <pre>
        {`OTEL_EXPORTER_OTLP_ENDPOINT=${http} OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf \\\nOTEL_ASYNCPROF_TIMELINE=true opentelemetry-instrument python app.py`}
      </pre>
      <p>
        {now?.receivers.grpc ? `OTLP is received over HTTP at ${http} and over gRPC at ${now.receivers.grpc}. ` : `OTLP is received over HTTP at ${http}. `}
        Spans are sent every 5 seconds, profiles every 10.
      </p>
    </Note>
  );
}

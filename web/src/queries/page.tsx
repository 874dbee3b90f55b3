// Slow statements: how often, how long, and who asks them.
import { useState } from "preact/hooks";
import type { Queries, Query } from "../api";
import { count, dateAndTime, duration, plural } from "../format";
import { api, status, useAnswer } from "../ui/answers";
import { Choice, Field } from "../ui/field";
import { useKeys } from "../ui/keys";
import { Note, Wait } from "../ui/state";
import { go, param } from "../ui/url";
import { SINCE, sinceUs } from "../traces/filters";
import { CallerText } from "./caller";

const SORTS: [string, string][] = [
  ["", "total time"],
  ["-runs", "runs"],
  ["-p50", "p50"],
  ["-p95", "p95"],
  ["-max", "longest"],
];
const LIMIT = 500;

export function QueriesPage() {
  const [openedAt] = useState(Date.now() * 1000);
  const answer = useAnswer<Queries>(
    api("queries", {
      service: param("service"),
      text: param("q"),
      operation: param("op"),
      since_us: sinceUs(param("since"), status.value?.now_us ?? openedAt),
      sort: param("sort"),
      limit: LIMIT,
    }),
  );
  const services = status.value?.services ?? [];
  return (
    <div class="page">
      <h1>Queries</h1>
      <form class="filters" role="search" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
        <Choice name="service" label="Service" options={[["", "any"], ...services.map((one): [string, string] => [one, one])]} />
        <Choice name="since" label="Since" options={SINCE} />
        <Field name="q" label="Text" hint="part of a statement" search size={24} />
        <Choice name="sort" label="Sort" options={SORTS} />
      </form>
      <Wait answer={answer} what="queries">
        {(data) => (data.queries.length === 0 ? <Empty /> : <Table queries={data} />)}
      </Wait>
    </div>
  );
}

function Empty() {
  if (param("q") || param("service") || param("since")) return <Note>No query matches these filters.</Note>;
  return (
    <Note>
      No query has arrived. Queries are spans with a statement (<code>db.query.text</code> or <code>db.statement</code>), as OpenTelemetry's instrumentations of database drivers make them: asyncpg, psycopg, SQLAlchemy, Tortoise ORM and others. If the program runs under{" "}
      <code>opentelemetry-instrument</code>, is the instrumentation of its driver installed?
    </Note>
  );
}

function Table({ queries }: { queries: Queries }) {
  const [cursor, setCursor] = useState(-1);
  const rows = queries.queries;
  useKeys({
    j: () => setCursor((at) => Math.min(rows.length - 1, at + 1)),
    k: () => setCursor((at) => Math.max(0, at - 1)),
    Enter: () => rows[cursor] && go(`/query/${rows[cursor]!.query_id}`),
  });
  const most = rows.reduce((largest, query) => Math.max(largest, query.total_us), 1);
  return (
    <>
      <div class="sideways">
        <table class="wide">
          <thead>
            <tr>
              <th class="n">total</th>
              <th class="n">runs</th>
              <th class="n">p50</th>
              <th class="n">p95</th>
              <th class="n">longest</th>
              <th>statement and who calls it</th>
              <th>requests</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((query, index) => (
              <QueryRow key={query.query_id} query={query} most={most} chosen={index === cursor} />
            ))}
          </tbody>
        </table>
      </div>
      {queries.since_us !== null && <p class="dim">Runs since {dateAndTime(queries.since_us)}: there are too many to add all up.</p>}
      {queries.total > rows.length && <p class="dim">The first {count(rows.length)} of {count(queries.total)}.</p>}
    </>
  );
}

function QueryRow({ query, most, chosen }: { query: Query; most: number; chosen: boolean }) {
  const to = `/query/${query.query_id}`;
  return (
    <tr aria-selected={chosen} class="clickable" onClick={(event) => (event.target as Element).closest("a") || go(to)}>
      <td class="n strong">
        {duration(query.total_us)}
        <span class="meter"><i style={{ width: `${(100 * query.total_us) / most}%` }} /></span>
      </td>
      <td class="n">{count(query.runs)}</td>
      <td class="n">{duration(query.p50_us)}</td>
      <td class="n">{duration(query.p95_us)}</td>
      <td class="n">{duration(query.max_us)}</td>
      <td>
        <a href={to}><code class="statement">{query.statement}</code></a>
        {query.errors > 0 && <span class="bad"> ▲ {plural(query.errors, "error")}</span>}
        {query.n_plus_one && <span class="hint"> {query.n_plus_one.runs}× under one span: N+1?</span>}
        <div class="small">
          {query.callers.map((one) => (
            <div key={`${one.caller.file}:${one.caller.line}`}>
              <CallerText caller={one.caller} /> <span class="dim">{plural(one.runs, "run")}</span>
            </div>
          ))}
          {query.n_callers > query.callers.length && <span class="dim">and {plural(query.n_callers - query.callers.length, "other caller")}</span>}
          {query.callers.length === 0 && <span class="dim">caller not known: too short for samples and for an exact caller</span>}
        </div>
      </td>
      <td class="small dim">{query.operations.map((one) => <div key={`${one.service} ${one.name}`}>{one.name}</div>)}</td>
    </tr>
  );
}

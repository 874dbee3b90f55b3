// One statement: its callers, its slowest runs and its stacks.
import type { QueryCaller, QueryDetail } from "../api";
import { count, dateAndTime, duration, percent, plural } from "../format";
import { selection, stackFilter } from "../stacks/filter";
import { StackView } from "../stacks/view";
import { api, useAnswer } from "../ui/answers";
import { Exports } from "../ui/exports";
import { useKeys } from "../ui/keys";
import { mark, setMark } from "../ui/mark";
import { Wait } from "../ui/state";
import { copy, say } from "../ui/toast";
import { go, href } from "../ui/url";
import { copyMarkdown } from "../trace/span";
import { CallerText } from "./caller";

export function QueryPage({ id }: { id: string }) {
  const answer = useAnswer<QueryDetail>(api(`queries/${encodeURIComponent(id)}`));
  return (
    <div class="page">
      <Wait answer={answer} what="the query">
        {(query) => <Content query={query} />}
      </Wait>
    </div>
  );
}

function Content({ query }: { query: QueryDetail }) {
  const self = { selector: `query:${query.query_id}`, label: query.statement.slice(0, 30) };
  const base = { query: query.query_id };
  useKeys({
    m: () => {
      setMark(self);
      say("A is this query");
    },
    M: () => (mark.value ? go(href("/compare", { a: mark.value.selector, b: self.selector })) : say("Mark something first, with m")),
    Escape: () => go("/queries"),
  });
  return (
    <>
      <div class="title">
        <a href="/queries" aria-label="Back to the queries">←</a>
        <h1><code class="statement">{query.statement}</code></h1>
      </div>
      <p>
        <b>{duration(query.total_us)}</b> in {plural(query.runs, "run")} · p50 {duration(query.p50_us)} · p95 {duration(query.p95_us)} · longest {duration(query.max_us)}
        {query.system && <span class="dim"> · {query.system}</span>}
        {query.errors > 0 && <span class="bad"> · {plural(query.errors, "error")}</span>}
        {query.older_runs > 0 && <span class="dim"> · {plural(query.older_runs, "older run")} left out</span>}
      </p>
      {query.n_plus_one && (
        <p class="hint">
          {query.n_plus_one.runs} runs under one span (N+1):{" "}
          <a href={`/trace/${query.n_plus_one.trace_id}?span=${query.n_plus_one.parent_span_id}`}>show that span</a>
        </p>
      )}
      <Callers query={query} />
      <div class="columns">
        <Slowest query={query} />
        <Histogram query={query} />
      </div>
      <h2>Stacks of all its runs</h2>
      <div class="actions">
        <Exports filter={selection(base)} />
        <button onClick={() => void copyMarkdown(stackFilter(base))}>Copy as Markdown</button>
        <button onClick={() => void copy(query.example, "Statement")} title={query.example}>Copy a statement as it was sent</button>
        <a class="button" href={href("/traces", { query: query.query_id })}>Traces with it</a>
      </div>
      <StackView base={base} root="this query" />
    </>
  );
}

function Callers({ query }: { query: QueryDetail }) {
  return (
    <section aria-label="Callers">
      <h2>
        Who calls it{" "}
        <span class="dim small">
          exact {count(query.runs_exact)} · sampled {count(query.runs_sampled)} · not known {count(query.runs_unknown)}
        </span>
      </h2>
      {query.all_callers.length === 0 ? (
        <p class="dim">
          Of none of its runs: slow queries (100 ms and more, <code>OTEL_ASYNCPROF_SLOW_SPAN_THRESHOLD</code>) get their exact caller, longer ones also samples.
        </p>
      ) : (
        <table class="wide">
          <thead>
            <tr>
              <th class="n">share</th>
              <th class="n">total</th>
              <th class="n">runs</th>
              <th class="n">p95</th>
              <th>caller</th>
              <th>for</th>
              <th>slowest run</th>
            </tr>
          </thead>
          <tbody>
            {query.all_callers.map((one) => (
              <CallerRow key={`${one.caller.file}:${one.caller.line}:${one.caller.function}`} one={one} query={query} />
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function CallerRow({ one, query }: { one: QueryCaller; query: QueryDetail }) {
  return (
    <tr>
      <td class="n strong">
        {percent(one.total_us, query.total_us)}
        <span class="meter"><i style={{ width: `${(100 * one.total_us) / Math.max(query.total_us, 1)}%` }} /></span>
      </td>
      <td class="n">{duration(one.total_us)}</td>
      <td class="n">{count(one.runs)}</td>
      <td class="n">{duration(one.p95_us)}</td>
      <td><CallerText caller={one.caller} /></td>
      <td class="small dim">
        {one.operations.map((operation) => (
          <div key={operation.name}>{operation.name} {percent(operation.runs, one.runs)}</div>
        ))}
      </td>
      <td>
        <a href={`/trace/${one.slowest.trace_id}?span=${one.slowest.span_id}`}>{duration(one.slowest.duration_us)}</a>
      </td>
    </tr>
  );
}

function Slowest({ query }: { query: QueryDetail }) {
  return (
    <section aria-label="Slowest runs">
      <h2>Slowest runs</h2>
      <table class="wide">
        <tbody>
          {query.slowest.map((run) => (
            <tr key={run.span_id}>
              <td class="n"><a href={`/trace/${run.trace_id}?span=${run.span_id}`}>{duration(run.duration_us)}</a></td>
              <td>{run.operation} <span class="dim">{run.service}</span></td>
              <td class="small">{run.caller ? <CallerText caller={run.caller} /> : <span class="dim">caller not known</span>}</td>
              <td class="n dim small">{dateAndTime(run.start_us)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Histogram({ query }: { query: QueryDetail }) {
  const most = Math.max(...query.histogram.map((one) => one.runs), 1);
  return (
    <section aria-label="How long its runs take">
      <h2>How long</h2>
      <table class="histogram">
        <tbody>
          {query.histogram.map((one) => (
            <tr key={one.upto_us}>
              <th scope="row" class="n">≤ {duration(one.upto_us)}</th>
              <td><span class="meter"><i style={{ width: `${(100 * one.runs) / most}%` }} /></span></td>
              <td class="n">{count(one.runs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

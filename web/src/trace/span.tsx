// What is known of the chosen span, and exactly its stacks.
import type { Span, SpanDetail, StackFilter, Trace } from "../api";
import { duration, percent, plural } from "../format";
import { CallerText } from "../queries/caller";
import { scope, selection, stackFilter } from "../stacks/filter";
import { StackView } from "../stacks/view";
import { api, useAnswer } from "../ui/answers";
import { Exports } from "../ui/exports";
import { useKeys } from "../ui/keys";
import { mark, setMark } from "../ui/mark";
import { SplitBar, SplitLegend } from "../ui/split";
import { Note } from "../ui/state";
import { copy, say } from "../ui/toast";
import { go, href, param, set } from "../ui/url";

export function toggleState(state: string): void {
  const chosen = param("state").split(",").filter(Boolean);
  const next = chosen.includes(state) ? chosen.filter((one) => one !== state) : [...chosen, state];
  set({ state: next.length === 4 ? "" : next.join(","), zoom: "" });
}

export async function copyMarkdown(filter: StackFilter): Promise<void> {
  try {
    const response = await fetch(api("markdown", filter));
    if (!response.ok) throw new Error(String(response.status));
    await copy(await response.text(), "Markdown");
  } catch {
    say("The server gave no text to copy");
  }
}

export function SpanPane({ trace, index, again }: { trace: Trace; index: number; again: number }) {
  const span = trace.spans[index]!;
  const detail = useAnswer<SpanDetail>(api(`traces/${trace.trace_id}/spans/${span.span_id}`), again);
  const base: StackFilter = { trace: trace.trace_id, span: span.span_id };
  const self = { selector: `span:${trace.trace_id}:${span.span_id}`, label: `${span.name} ${duration(span.duration_us)}` };
  useKeys({
    m: () => {
      setMark(self);
      say(`A is ${span.name}`);
    },
    M: () => (mark.value ? go(href("/compare", { a: mark.value.selector, b: self.selector })) : say("Mark something first, with m")),
  });
  const within = scope();
  const split = within === "trace" ? trace.spans[0]!.split : within === "children" ? span.split : span.own;
  const repeated = trace.n_plus_one.find((one) => one.query_id === span.query_id && trace.spans[span.parent]?.span_id === one.parent_span_id);
  return (
    <section class="span-pane" aria-label={`Span ${span.name}`}>
      <div class="title">
        <h2 class="clip-2">{span.statement ? <code>{span.statement}</code> : span.name}</h2>
        <b>{duration(span.duration_us)}</b>
        <span class="dim">
          {span.service} · {span.kind} · {plural(span.samples, "sample")} · itself {duration(span.duration_us - span.own.children_us)}
          {span.cpu_us > 0 && ` · CPU ${duration(span.cpu_us)}`}
        </span>
      </div>
      {span.caller && (
        <p class="called-by">
          called by <CallerText caller={span.caller} /> {span.query_id !== null && <a href={`/query/${span.query_id}`}>all callers of this query</a>}
        </p>
      )}
      {!span.caller && span.query_id !== null && (
        <p class="dim">
          Caller not known: no sample of this run, and no <code>code.*</code> attributes, which slow queries get. <a href={`/query/${span.query_id}`}>Callers of other runs</a>
        </p>
      )}
      {repeated && <p class="hint">{repeated.runs} runs of this query under one span, one per row (N+1): a single query for all would do.</p>}
      {span.error && <Note kind="error">{detail.data?.status_message || "The span ended with an error."}</Note>}
      {within === "trace" && <p class="dim small">The whole trace, all spans together:</p>}
      <div class="bar-big">
        <SplitBar split={split} />
      </div>
      <SplitLegend split={split} chosen={param("state").split(",")} choose={toggleState} />
      <div class="actions">
        <Exports filter={selection(base)} />
        <button onClick={() => void copyMarkdown(stackFilter(base))}>Copy as Markdown</button>
        <button onClick={() => setMark(self)} title="Mark as A (m)">Mark as A</button>
        {mark.value && mark.value.selector !== self.selector && <a class="button" href={href("/compare", { a: mark.value.selector, b: self.selector })}>Compare with A</a>}
        <OtherRuns span={span} selector={self.selector} />
        {detail.data && detail.data.same_operation.runs > 1 && (
          <span class="dim small">
            {plural(detail.data.same_operation.runs, "run")}: p50 {duration(detail.data.same_operation.p50_us)}, p95 {duration(detail.data.same_operation.p95_us)}, longest {duration(detail.data.same_operation.max_us)}
          </span>
        )}
      </div>
      <StackView base={base} root={within === "trace" ? "all spans" : span.name} again={again} />
      {detail.data && <Attributes span={detail.data} />}
    </section>
  );
}

/** Of a root there is an operation, of a query its statement; of other spans nothing is kept by name. */
function OtherRuns({ span, selector }: { span: Span; selector: string }) {
  if (span.query_id !== null) {
    return (
      <>
        <a class="button" href={href("/compare", { a: `query:${span.query_id}`, b: selector })} title="The mean of this query's runs beside this one">Compare with all runs</a>
        <a class="button" href={`/query/${span.query_id}`}>All runs</a>
      </>
    );
  }
  if (span.parent >= 0) return null;
  const operation = `${span.service}/${span.name}`;
  return (
    <>
      <a class="button" href={href("/compare", { a: `op:${operation}@fast`, b: selector })} title="The faster half of this operation beside this span">Compare with fast runs</a>
      <a class="button" href={href("/operations", { op: operation })}>All runs</a>
    </>
  );
}

export function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function Attributes({ span }: { span: SpanDetail }) {
  return (
    <details class="attributes">
      <summary>Attributes, resource, events ({Object.keys(span.attributes).length + Object.keys(span.resource).length + span.events.length})</summary>
      <Values title="Span" values={{ ...span.attributes, "span id": span.span_id, ...(span.scope ? { scope: span.scope } : {}), ...(span.trace_state ? { "trace state": span.trace_state } : {}) }} />
      <Values title="Resource" values={span.resource} />
      {span.events.map((event, i) => (
        <Values key={i} title={`${event.name}, after ${duration(event.at_us)} (${percent(event.at_us - span.start_us, span.duration_us)} of the span)`} values={event.attributes} />
      ))}
      {span.links.map((link) => (
        <p key={link.span_id}>
          linked: <a href={`/trace/${link.trace_id}?span=${link.span_id}`}>{link.trace_id.slice(0, 8)}… {link.span_id}</a>
        </p>
      ))}
      {span.stacktrace && (
        <>
          <h3>Stack at the start of the span</h3>
          <pre>{span.stacktrace}</pre>
        </>
      )}
    </details>
  );
}

function Values({ title, values }: { title: string; values: Record<string, unknown> }) {
  const rows = Object.entries(values);
  return (
    <>
      <h3>{title}</h3>
      {rows.length === 0 ? <p class="dim">none</p> : (
        <dl class="values">
          {rows.map(([key, value]) => (
            <div key={key}>
              <dt>{key}</dt>
              <dd>{shown(value)}</dd>
            </div>
          ))}
        </dl>
      )}
    </>
  );
}

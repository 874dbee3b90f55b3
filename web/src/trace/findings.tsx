// Why this trace was slow, in sentences that lead to the place.
import type { Holders, Trace } from "../api";
import { duration, percent, place } from "../format";
import { CallerText } from "../queries/caller";
import { changed, path } from "../ui/url";
import { type Finding, findings } from "./verdict";

export function Findings({ trace, holders }: { trace: Trace; holders: Holders | null }) {
  const all = findings(trace, holders);
  if (all.length === 0) return null;
  return (
    <section class="findings" aria-label="Why it took so long">
      <h2>Why it took {duration(trace.duration_us)}</h2>
      <ol>
        {all.map((one) => (
          <li key={`${one.kind} ${one.span} ${one.name}`}>
            <span class="share">
              <b>{percent(one.us, trace.duration_us)}</b> <span class="dim">{duration(one.us)}</span>
            </span>
            <span>
              <Sentence one={one} trace={trace} />
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function toSpan(trace: Trace, one: Finding, state = ""): string {
  return changed({ span: trace.spans[one.span]!.span_id, scope: "", state, zoom: "", t0: "", t1: "", fn: "", file: "" }, path.value);
}

function Sentence({ one, trace }: { one: Finding; trace: Trace }) {
  const name = <a href={toSpan(trace, one, ["running", "blocked", "ready"].includes(one.kind) ? one.kind : "")}>{one.name}</a>;
  switch (one.kind) {
    case "query":
    case "call":
      return (
        <>
          {one.runs > 1 ? `${one.runs} × ` : ""}
          <code class="statement">{name}</code>
          {one.caller ? <> called by <CallerText caller={one.caller} /></> : <span class="dim"> (caller not known)</span>}
          {one.repeated && <span class="hint"> one query per row (N+1): ask once for all</span>}
        </>
      );
    case "held":
      return <Held one={one} />;
    case "running":
      return <>on the CPU in {name}: Python code at work</>;
    case "blocked":
      return <>a blocking call in {name}: the whole event loop stood still</>;
    case "ready":
      return <>{name} could run, but the event loop was busy</>;
    case "waiting":
      return <>{name} itself waited: a timer, a lock, a queue or an answer without a span</>;
  }
}

function Held({ one }: { one: Finding }) {
  const holder = one.holder!;
  const name = <b>{one.name}</b>;
  return (
    <>
      ready, but the event loop was held by{" "}
      {holder.trace_id && holder.span_id ? <a href={`/trace/${holder.trace_id}?span=${holder.span_id}`}>{name}</a> : name}
      {holder.operation && !holder.same_trace && <> of {holder.operation}</>}
      {holder.caller && <> at <code>{holder.caller.function}</code> {place(holder.caller)}</>}
    </>
  );
}

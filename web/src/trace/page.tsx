// One trace: why it took so long, its spans or tasks on the time axis, and the stacks of what is chosen.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Holders, Trace } from "../api";
import { dateAndTime, duration, plural } from "../format";
import { api, change, useAnswer } from "../ui/answers";
import { Field } from "../ui/field";
import { useKeys } from "../ui/keys";
import { SplitBar } from "../ui/split";
import { Note, Wait } from "../ui/state";
import { copy } from "../ui/toast";
import { go, param, set } from "../ui/url";
import { Findings } from "./findings";
import { HoldersView } from "./holders";
import { LanesView } from "./lanes";
import { SpanPane } from "./span";
import { firstSpan } from "./verdict";
import { Waterfall } from "./waterfall";

const STILL_ARRIVING_US = 30_000_000; // profiles come some seconds after their spans
const NEWS_MS = 2000; // at most so often a trace is asked for again

/** The revision to show: follows the server's while the trace may still grow. */
function useNews(trace: Trace | null): number {
  const [shown, setShown] = useState(0);
  const revision = change.value?.revision ?? 0;
  const growing = trace !== null && (trace.start_us + trace.duration_us + STILL_ARRIVING_US) / 1000 > Date.now();
  useEffect(() => {
    if (!growing || revision === 0) return;
    const timer = setTimeout(() => setShown(revision), NEWS_MS);
    return () => clearTimeout(timer);
  }, [revision, growing]);
  return shown;
}

export function TracePage({ id }: { id: string }) {
  const [again, setAgain] = useState(0);
  const answer = useAnswer<Trace>(api(`traces/${encodeURIComponent(id)}`), again);
  const news = useNews(answer.data);
  useEffect(() => setAgain(news), [news]);
  useKeys({ Escape: () => go("/traces") });
  return (
    <div class="page trace">
      <Wait answer={answer} what="the trace">
        {(trace) => (trace.spans.length === 0 ? <Note>No span of this trace has arrived.</Note> : <Content trace={trace} again={again} />)}
      </Wait>
    </div>
  );
}

function Content({ trace, again }: { trace: Trace; again: number }) {
  const first = useMemo(() => firstSpan(trace), [trace]);
  const wanted = param("span");
  const found = wanted ? trace.spans.findIndex((span) => span.span_id === wanted) : first;
  const selected = found < 0 ? first : found;
  const root = trace.spans[0]!;
  const holders = useAnswer<Holders>(root.split.ready_us > 0 ? api("holders", { trace: trace.trace_id }) : null, again);
  const tasks = param("tasks") !== "";
  const choose = (index: number, replace = false) =>
    set({ span: trace.spans[index]!.span_id, zoom: "", fn: "", file: "", view: param("view") === "sandwich" ? "" : param("view") }, replace);
  useKeys({ "4": () => set({ tasks: tasks ? "" : "1" }) });
  useEffect(() => {
    document.title = `${root.name} ${duration(trace.duration_us)} · otel-asyncprof`;
  }, [trace]);
  return (
    <>
      <div class="title">
        <a href="/traces" aria-label="Back to the traces">←</a>
        <h1>{root.name}</h1>
        <b>{duration(trace.duration_us)}</b>
        <span class="dim">
          {trace.services.join(", ")} · {plural(trace.spans.length, "span")} · {plural(trace.samples, "sample")}
          {trace.period_us > 0 && ` every ${duration(trace.period_us)}`} · {dateAndTime(trace.start_us)}
        </span>
        <button class="link mono small" title="Copy the trace's id" onClick={() => void copy(trace.trace_id, "Trace id")}>
          {trace.trace_id.slice(0, 8)}…
        </button>
      </div>
      <div class="bar-big">
        <SplitBar split={root.split} />
      </div>
      <Findings trace={trace} holders={holders.data} />
      <div class="toolbar">
        <span class="tabs" role="group" aria-label="On the time axis">
          <button aria-pressed={!tasks} onClick={() => set({ tasks: "" })}>Spans</button>
          <button aria-pressed={tasks} title="Tasks (4)" onClick={() => set({ tasks: "1" })}>Tasks</button>
        </span>
        {!tasks && <Field name="spans" label="Find spans" hint="name or statement" size={18} />}
        {!tasks && <span class="dim small">▏ left of a name: on the critical path</span>}
      </div>
      {tasks ? (
        <LanesView trace={trace} selected={selected} choose={choose} again={again} />
      ) : (
        <Waterfall trace={trace} selected={selected} choose={choose} />
      )}
      {wanted && found < 0 && <Note>Span {wanted} is not in this trace (yet); another one is shown.</Note>}
      <SpanPane key={trace.spans[selected]!.span_id} trace={trace} index={selected} again={again} />
      {holders.data && holders.data.holders.length > 0 && <HoldersView holders={holders.data} />}
    </>
  );
}

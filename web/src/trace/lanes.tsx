// Tasks on the trace's time axis: who awaits whom, and on top who held the event loop.
import { useMemo, useRef, useState } from "preact/hooks";
import type { Holder, Lanes, Trace } from "../api";
import { duration, place, plural, ticks } from "../format";
import { api, useAnswer } from "../ui/answers";
import { useKeys } from "../ui/keys";
import { Note, Wait } from "../ui/state";
import { param, set } from "../ui/url";
import { VirtualList } from "../ui/virtual";
import { LaneRow, type Selection } from "./lane-row";

const ROW = 26;
const HIGHEST = 320;
const DRAG = 4; // pixels from which a movement selects a time
const TICKS = 5;
const KINDS = { task: "", thread: "thread", span: "span: its task has no name", parent: "span: never seen itself, only what is below it" };

interface Props {
  trace: Trace;
  selected: number;
  choose: (index: number, replace?: boolean) => void;
  again: number;
}

export function LanesView({ trace, selected, choose, again }: Props) {
  const answer = useAnswer<Lanes>(api(`traces/${trace.trace_id}/lanes`), again);
  return (
    <Wait answer={answer} what="tasks">
      {(lanes) => {
        if (!lanes.timeline) {
          return (
            <Note>
              The samples of this trace have no times, so tasks cannot be put on an axis. Start the program with <code>OTEL_ASYNCPROF_TIMELINE=true</code>, or under <code>otel-asyncprof run --view</code>.
            </Note>
          );
        }
        if (lanes.lanes.length === 0) return <Note>No task of this trace was sampled.</Note>;
        return <Drawn lanes={lanes} trace={trace} selected={selected} choose={choose} />;
      }}
    </Wait>
  );
}

const LEAST_STRETCH = 1000; // microseconds
const STEP = 0.25; // of the stretch

/** Keys that choose a stretch of time, as drawing over the lanes does. */
function stretchKeys(chosen: Selection | null, whole: number): Record<string, () => void> {
  const { from, to } = chosen ?? { from: 0, to: whole };
  const take = (middle: number, length: number) => {
    if (length >= whole) return set({ t0: "", t1: "", zoom: "" }, true);
    const start = Math.min(whole - length, Math.max(0, middle - length / 2));
    set({ t0: Math.floor(start), t1: Math.ceil(start + length), scope: "trace", zoom: "" }, true);
  };
  const resize = (factor: number) => () => take((from + to) / 2, Math.max((to - from) * factor, Math.min(LEAST_STRETCH, whole)));
  const shift = (by: number) => () => chosen && take((from + to) / 2 + by * (to - from), to - from);
  const [shorter, longer] = [resize(0.5), resize(2)];
  return { w: shorter, "+": shorter, s: longer, "-": longer, a: shift(-STEP), d: shift(STEP), ...(chosen ? { "0": () => take(0, whole) } : {}) };
}

function laneTip(lanes: Lanes, trace: Trace, lane: number, piece: number): string {
  const { pieces, name, kind } = lanes.lanes[lane]!;
  const state = pieces.state[piece]!;
  const stack = lanes.stacks[pieces.stack[piece]!] ?? [];
  const leaf = lanes.frames[stack.at(-1) ?? -1];
  const span = trace.spans[pieces.span[piece]!];
  const where = leaf ? ` in ${leaf[0]} ${place({ file: leaf[1], line: leaf[2] })}` : "";
  const what = state === "children" ? (kind === "parent" ? "never seen itself, but what is below it" : "waits for the tasks below it") : state + where;
  return `${name}: ${what}, ${duration(pieces.end_us[piece]! - pieces.start_us[piece]!)}${span ? `, span ${span.name}` : ""}`;
}

function holderTip(holder: Holder): string {
  const who = holder.span_name || holder.task || holder.thread;
  return `${who} held the loop (${holder.state})${holder.caller ? ` in ${holder.caller.function} ${place(holder.caller)}` : ""}${holder.same_trace ? "" : `, of ${holder.operation || "no span"}`}`;
}

function Drawn({ lanes, trace, selected, choose }: { lanes: Lanes; trace: Trace; selected: number; choose: Props["choose"] }) {
  const [said, setSaid] = useState("");
  const [cursor, setCursor] = useState(-1);
  const [dragged, setDragged] = useState<Selection | null>(null);
  const begin = useRef<number | null>(null);
  const loop = lanes.holders.pieces;
  const hasLoop = loop.start_us.length > 0;
  const whole = Math.max(lanes.duration_us, 1);
  const task = param("task");
  const chosen: Selection | null = param("t1") ? { from: Number(param("t0")), to: Number(param("t1")) } : null;
  const loopPieces = useMemo(() => ({ ...loop, state: loop.holder.map((holder) => lanes.holders.holders[holder]?.state ?? "running") }), [lanes]);
  const only = (index: number) => {
    const lane = lanes.lanes[index];
    if (lane && lane.kind !== "task") {
      const span = lane.pieces.span.find((one) => one >= 0);
      if (span !== undefined) choose(span);
    } else if (lane) set({ task: lane.name === task ? "" : lane.name, scope: "trace" });
  };
  useKeys({
    j: () => setCursor((at) => Math.min(lanes.lanes.length - 1, at + 1)),
    k: () => setCursor((at) => Math.max(0, at - 1)),
    ArrowDown: () => setCursor((at) => Math.min(lanes.lanes.length - 1, at + 1)),
    ArrowUp: () => setCursor((at) => Math.max(0, at - 1)),
    Enter: () => only(cursor),
    ...stretchKeys(chosen, whole),
  });

  const timeAt = (event: MouseEvent): number | null => {
    const column = (event.currentTarget as HTMLElement).querySelector(".axis")!.getBoundingClientRect();
    if (event.clientX < column.left - 2) return null;
    return Math.min(whole, Math.max(0, ((event.clientX - column.left) / column.width) * whole));
  };
  const pixels = (event: MouseEvent, us: number) => ((event.currentTarget as HTMLElement).querySelector(".axis")!.clientWidth * us) / whole;
  const move = (event: MouseEvent) => {
    const at = timeAt(event);
    if (begin.current === null || at === null) return;
    setDragged({ from: Math.min(at, begin.current), to: Math.max(at, begin.current) });
  };
  const release = (event: MouseEvent) => {
    const at = timeAt(event);
    const from = begin.current;
    begin.current = null;
    setDragged(null);
    if (from === null || at === null || pixels(event, Math.abs(at - from)) < DRAG) return;
    set({ t0: Math.floor(Math.min(at, from)), t1: Math.ceil(Math.max(at, from)), scope: "trace", zoom: "" });
  };
  return (
    <div
      class="lanes"
      onMouseDown={(event) => (begin.current = timeAt(event))}
      onMouseMove={move}
      onMouseUp={release}
      onMouseLeave={() => {
        begin.current = null;
        setDragged(null);
        setSaid("");
      }}
    >
      <div class="lane-grid head">
        <span>task</span>
        <span class="axis" aria-hidden="true">
          {ticks(whole, TICKS).map((us) => (
            <i key={us} style={{ left: `${(100 * us) / whole}%` }}>{duration(us)}</i>
          ))}
        </span>
      </div>
      {hasLoop && (
        <div role="grid" aria-label="Event loop">
          <LaneRow
            name="event loop"
            note={`held while something here was ready, ${duration(lanes.holders.ready_us)}`}
            depth={0}
            pieces={loopPieces}
            whole={whole}
            selection={dragged ?? chosen}
            tip={(piece) => holderTip(lanes.holders.holders[loop.holder[piece]!]!)}
            hover={setSaid}
            click={() => document.getElementById("holders")?.scrollIntoView({ behavior: "smooth" })}
          />
        </div>
      )}
      <VirtualList count={lanes.lanes.length} rowHeight={ROW} cursor={cursor} label={`Tasks, ${plural(lanes.lanes.length, "row")}`} role="treegrid" highest={HIGHEST}>
        {(index, top) => {
          const lane = lanes.lanes[index]!;
          const by = lane.awaited_by;
          return (
            <LaneRow
              key={index}
              name={lane.name}
              note={by ? `awaited by ${lanes.lanes[by.lane]?.name ?? "?"} at ${place(by)}` : KINDS[lane.kind]}
              depth={lane.depth}
              pieces={lane.pieces}
              whole={whole}
              top={top}
              row={index}
              chosen={index === cursor || (lane.kind === "task" && lane.name === task)}
              selection={dragged ?? chosen}
              marked={lane.pieces.span.map((span) => span === selected)}
              tip={(piece) => laneTip(lanes, trace, index, piece)}
              hover={setSaid}
              click={(piece) => lane.pieces.span[piece]! >= 0 && choose(lane.pieces.span[piece]!)}
              onName={() => only(index)}
            />
          );
        }}
      </VirtualList>
      <p class="lane-said small" role="status">
        {said || <span class="dim">Draw over a stretch of time to see only its stacks (keys: w s a d); click a piece for its span, a name for only that task.</span>}
      </p>
    </div>
  );
}

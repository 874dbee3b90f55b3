// The spans of a trace on its time axis; each bar shows where its time went.
import { useMemo } from "preact/hooks";
import type { Span, Trace } from "../api";
import { duration, plural, ticks } from "../format";
import { useKeys } from "../ui/keys";
import { SplitBar } from "../ui/split";
import { param, set } from "../ui/url";
import { VirtualList } from "../ui/virtual";
import { visible } from "./rows";

const ROW = 26;
const INDENT = 14;
const DEEPEST = 18; // levels that are still moved to the right
const HIGHEST = 320; // pixels
const TICKS = 5;

function closedSpans(): Set<number> {
  return new Set(param("closed").split(".").filter(Boolean).map(Number));
}

interface Props {
  trace: Trace;
  selected: number;
  choose: (index: number, replace?: boolean) => void;
}

export function Waterfall({ trace, selected, choose }: Props) {
  const closed = closedSpans();
  const rows = useMemo(() => visible(trace.spans, closed), [trace, param("closed")]);
  const critical = useMemo(() => new Set(trace.critical_path), [trace]);
  const parents = useMemo(() => new Set(trace.spans.map((span) => span.parent)), [trace]);
  const find = param("spans").toLowerCase();
  const at = rows.indexOf(selected);
  const step = (by: number) => {
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
    if (next !== undefined) choose(next, true);
  };
  const toggle = (index: number, close: boolean) => {
    const next = new Set(closed);
    if (close) next.add(index);
    else next.delete(index);
    set({ closed: [...next].sort((a, b) => a - b).join(".") }, true);
  };
  const collapse = () => {
    const span = trace.spans[selected];
    if (!span) return;
    if (parents.has(selected) && !closed.has(selected)) toggle(selected, true);
    else if (span.parent >= 0) choose(span.parent, true);
  };
  const expand = () => {
    if (closed.has(selected)) toggle(selected, false);
    else if (parents.has(selected)) step(1);
  };
  useKeys({ j: () => step(1), k: () => step(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1), h: collapse, l: expand, ArrowLeft: collapse, ArrowRight: expand });
  return (
    <div class="waterfall">
      <div class="span-grid head" aria-hidden="true">
        <span>span</span>
        <span class="axis">
          {ticks(trace.duration_us, TICKS).map((us) => (
            <i key={us} style={{ left: `${(100 * us) / trace.duration_us}%` }}>{duration(us)}</i>
          ))}
        </span>
        <span class="n">duration</span>
        <span class="n">samples</span>
      </div>
              <VirtualList count={rows.length} rowHeight={ROW} cursor={at} label={`Spans of the trace, ${plural(rows.length, "row")}`} role="treegrid" highest={HIGHEST}>
          {(row, top) => {
            const index = rows[row]!;
            const span = trace.spans[index]!;
            return (
              <Row
                key={span.span_id}
                span={span}
                trace={trace}
                row={row}
                top={top}
                chosen={index === selected}
                critical={critical.has(index)}
                faded={find !== "" && !`${span.name} ${span.service} ${span.statement ?? ""}`.toLowerCase().includes(find)}
                open={parents.has(index) ? !closed.has(index) : null}
                choose={() => choose(index)}
                toggle={() => toggle(index, !closed.has(index))}
              />
            );
          }}
        </VirtualList>
    </div>
  );
}

interface RowProps {
  span: Span;
  trace: Trace;
  row: number;
  top: number;
  chosen: boolean;
  critical: boolean;
  faded: boolean;
  open: boolean | null; // null: nothing below it
  choose: () => void;
  toggle: () => void;
}

function Row({ span, trace, row, top, chosen, critical, faded, open, choose, toggle }: RowProps) {
  const whole = Math.max(trace.duration_us, 1);
  return (
    <div
      class={`span-grid row ${faded ? "faded" : ""} ${critical ? "critical" : ""}`}
      role="row"
      aria-rowindex={row + 1}
      aria-level={span.depth + 1}
      aria-selected={chosen}
      {...(open === null ? {} : { "aria-expanded": open })}
      style={{ top: `${top}px` }}
      onClick={choose}
      data-span={span.span_id}
    >
      <span role="rowheader" class="clip" style={{ paddingLeft: `${Math.min(span.depth, DEEPEST) * INDENT}px` }} title={`${span.service} · ${span.statement ?? span.name}${critical ? "\non the critical path" : ""}`}>
        {open === null ? (
          <span class="twist" />
        ) : (
          <button
            class="twist"
            tabIndex={-1}
            aria-label={open ? "Collapse" : "Expand"}
            onClick={(event) => {
              event.stopPropagation();
              toggle();
            }}
          >
            {open ? "▾" : "▸"}
          </button>
        )}
        {span.error && <span class="bad" title="error">▲ </span>}
        {span.statement ?? span.name} {trace.services.length > 1 && <span class="dim">{span.service}</span>}
      </span>
      <span role="gridcell" class="time">
        <span class="bar-at" style={{ left: `${(100 * span.start_us) / whole}%`, width: `max(2px, ${(100 * span.duration_us) / whole}%)` }}>
          <SplitBar split={span.split} />
        </span>
      </span>
      <span role="gridcell" class="n">{duration(span.duration_us)}</span>
      <span role="gridcell" class="n">{span.samples || <span class="dim">–</span>}</span>
    </div>
  );
}

// The functions of the same stacks as a table: what the graph shows, for those who do not see it.
import { useState } from "preact/hooks";
import type { FunctionRow, Functions, StackFilter } from "../api";
import { duration, percent, place, plural, shortFile } from "../format";
import { api, useAnswer } from "../ui/answers";
import { useKeys } from "../ui/keys";
import { SplitBar } from "../ui/split";
import { Note, Wait } from "../ui/state";
import { param, set } from "../ui/url";
import { VirtualList } from "../ui/virtual";
import { FrameActions } from "./frame";

const ROW = 26;
const HIGHEST = 440;
const COLUMNS: [string, string, (row: FunctionRow) => number | string][] = [
  ["self", "itself", (row) => row.self_us],
  ["total", "total", (row) => row.total_us],
  ["samples", "samples", (row) => row.samples],
  ["function", "function", (row) => row.function],
  ["place", "place", (row) => place(row)],
];

export function FunctionTable({ filter, again }: { filter: StackFilter; again: unknown }) {
  const answer = useAnswer<Functions>(api("functions", filter), again);
  return (
    <Wait answer={answer} what="functions">
      {(data) => (data.rows.length === 0 ? <Note>No samples here.</Note> : <Table data={data} />)}
    </Wait>
  );
}

function sorted(rows: FunctionRow[]): FunctionRow[] {
  const [, , key] = COLUMNS.find(([name]) => name === param("tsort")) ?? COLUMNS[0]!;
  const finding = param("find") !== "";
  return [...rows].sort((a, b) => {
    if (finding && a.match !== b.match) return a.match ? -1 : 1;
    const [x, y] = [key(a), key(b)];
    return typeof x === "number" ? (y as number) - x : x.localeCompare(y as string);
  });
}

function Table({ data }: { data: Functions }) {
  const rows = sorted(data.rows);
  const chosen = rows.findIndex((row) => row.function === param("fn") && row.file === param("file"));
  const [focused, setFocused] = useState(false);
  const choose = (index: number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))];
    if (row) set({ fn: row.function, file: row.file }, true);
  };
  useKeys(focused ? { j: () => choose(chosen + 1), k: () => choose(chosen - 1), ArrowDown: () => choose(chosen + 1), ArrowUp: () => choose(chosen - 1) } : {});
  const row = rows[chosen];
  return (
    <div onFocusIn={() => setFocused(true)} onFocusOut={() => setFocused(false)}>
      <div class="function-grid head">
        {COLUMNS.map(([name, text], i) => (
          <button key={name} class="link" aria-pressed={(param("tsort") || "self") === name} onClick={() => set({ tsort: i === 0 ? "" : name })}>
            {text}
            {(param("tsort") || "self") === name && " ▾"}
          </button>
        ))}
        <span>states</span>
      </div>
      <VirtualList count={rows.length} rowHeight={ROW} cursor={chosen} label={`Functions, ${plural(rows.length, "row")}`} role="grid" highest={HIGHEST}>
        {(index, top) => <Row key={index} row={rows[index]!} whole={data.total_us} top={top} index={index} chosen={index === chosen} choose={() => choose(index)} />}
      </VirtualList>
      {row && (
        <div class="frame-bar">
          <code class="strong">{row.function}</code> {place(row)} <FrameActions frame={row} />
        </div>
      )}
    </div>
  );
}

function Row({ row, whole, top, index, chosen, choose }: { row: FunctionRow; whole: number; top: number; index: number; chosen: boolean; choose: () => void }) {
  const dim = param("find") !== "" && !row.match;
  return (
    <div class={`function-grid row ${dim ? "faded" : ""}`} role="row" aria-rowindex={index + 1} aria-selected={chosen} style={{ top: `${top}px` }} onClick={choose}>
      <span role="gridcell" class="n">{duration(row.self_us)} <span class="dim">{percent(row.self_us, whole)}</span></span>
      <span role="gridcell" class="n">{duration(row.total_us)} <span class="dim">{percent(row.total_us, whole)}</span></span>
      <span role="gridcell" class="n" title={`± ${Math.round(100 * row.margin)} %`}>{row.samples}</span>
      <span role="gridcell" class="clip"><code class={row.kind === "own" ? "strong" : ""}>{row.function}</code></span>
      <span role="gridcell" class="place-cell dim" title={`${row.file}:${row.line}`}>
        <span class="clip">{shortFile(row.file)}</span>
        {row.file && row.line > 0 && `:${row.line}`}
      </span>
      <span role="gridcell"><SplitBar split={{ ...row, not_sampled_us: 0 }} /></span>
    </div>
  );
}

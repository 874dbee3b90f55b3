// One lane: a name, and pieces of time drawn on a canvas of its own.
import { useEffect, useRef } from "preact/hooks";
import { duration, percent } from "../format";
import { colour, colours } from "../ui/theme";
import { useWidth } from "../ui/virtual";

const HEIGHT = 26;
const BAR = 16;
const INDENT = 14;
const DEEPEST = 10;
const LEAST = 1; // pixels of a piece

export interface Selection {
  from: number;
  to: number;
}

interface Pieces {
  start_us: number[];
  end_us: number[];
  state: string[];
}

interface Props {
  name: string;
  note: string;
  depth: number;
  pieces: Pieces;
  whole: number;
  selection: Selection | null;
  marked?: boolean[]; // pieces of the chosen span
  chosen?: boolean;
  top?: number;
  row?: number;
  tip: (piece: number) => string;
  hover: (text: string) => void;
  click: (piece: number) => void;
  onName?: () => void;
}

export function LaneRow(props: Props) {
  const { name, note, depth, pieces, whole, top, row, chosen } = props;
  const box = useRef<HTMLSpanElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  useEffect(() => {
    if (width > 0) draw(canvas.current!, props, width);
  }, [pieces, width, whole, props.selection?.from, props.selection?.to, props.marked?.join(), colours.value]);
  const pieceAt = (event: MouseEvent): number => {
    const us = ((event.clientX - canvas.current!.getBoundingClientRect().left) / width) * whole;
    const slack = whole / width;
    return pieces.start_us.findIndex((start, i) => us >= start - slack && us <= pieces.end_us[i]! + slack);
  };
  const title = note ? `${name}: ${note}` : name;
  return (
    <div
      class="lane-grid row"
      role="row"
      {...(row === undefined ? {} : { "aria-rowindex": row + 1, "aria-level": depth + 1 })}
      aria-selected={chosen ?? false}
      style={top === undefined ? { position: "relative" } : { top: `${top}px` }}
    >
      <span role="rowheader" class="clip" style={{ paddingLeft: `${Math.min(depth, DEEPEST) * INDENT}px` }} title={title}>
        {depth > 0 && <span class="dim">└ </span>}
        {props.onName ? <button class="link" tabIndex={-1} onClick={props.onName}>{name}</button> : <b>{name}</b>} <span class="dim small">{note}</span>
      </span>
      <span role="gridcell" ref={box} class="time" aria-label={inWords(pieces)}>
        <canvas
          ref={canvas}
          aria-hidden="true"
          onMouseMove={(event) => {
            const piece = pieceAt(event);
            props.hover(piece < 0 ? "" : props.tip(piece));
          }}
          onClick={(event) => {
            const piece = pieceAt(event);
            if (piece >= 0) props.click(piece);
          }}
        />
      </span>
    </div>
  );
}

function inWords(pieces: Pieces): string {
  const sums = new Map<string, number>();
  let whole = 0;
  pieces.state.forEach((state, i) => {
    const us = pieces.end_us[i]! - pieces.start_us[i]!;
    whole += us;
    sums.set(state, (sums.get(state) ?? 0) + us);
  });
  return [...sums].map(([state, us]) => `${state === "children" ? "waits for tasks" : state} ${duration(us)}, ${percent(us, whole)}`).join("; ");
}

function draw(canvas: HTMLCanvasElement, { pieces, whole, selection, marked }: Props, width: number): void {
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = HEIGHT * ratio;
  canvas.style.height = `${HEIGHT}px`;
  const paint = canvas.getContext("2d")!;
  paint.scale(ratio, ratio);
  const fills = new Map(["running", "waiting", "ready", "blocked", "children", "hatch-line", "edge", "accent", "chosen"].map((name) => [name, colour(name)]));
  const top = (HEIGHT - BAR) / 2;
  if (selection) {
    paint.fillStyle = fills.get("chosen")!;
    paint.fillRect((selection.from / whole) * width, 0, ((selection.to - selection.from) / whole) * width, HEIGHT);
  }
  pieces.start_us.forEach((start, i) => {
    const x = (start / whole) * width;
    const wide = Math.max(LEAST, ((pieces.end_us[i]! - start) / whole) * width);
    const state = pieces.state[i]!;
    paint.fillStyle = fills.get(state) ?? fills.get("waiting")!;
    if (state === "children") paint.fillRect(x, HEIGHT / 2 - 1, wide, 2);
    else paint.fillRect(x, top, wide, BAR);
    hatch(paint, state, x, top, wide, fills.get("hatch-line")!);
    if (isEdge(pieces, i, whole / width)) {
      paint.fillStyle = fills.get("edge")!;
      paint.fillRect(x, top, 1, BAR);
    }
    if (marked?.[i]) {
      paint.fillStyle = fills.get("accent")!;
      paint.fillRect(x, HEIGHT - 3, wide, 2);
    }
  });
}

const LEAST_EDGED = 3; // pixels of a piece that has room for an edge

/** Whether a piece begins where another state ended; `pixel` is the time of one. */
function isEdge({ start_us, end_us, state }: Pieces, i: number, pixel: number): boolean {
  return i > 0 && state[i] !== state[i - 1] && state[i] !== "children" && start_us[i]! - end_us[i - 1]! < pixel && end_us[i]! - start_us[i]! >= LEAST_EDGED * pixel;
}

const HATCH = 6; // pixels between lines

/** The same patterns as elsewhere: slanted for waiting, upright for ready, crossed for blocked. */
function hatch(paint: CanvasRenderingContext2D, state: string, x: number, y: number, wide: number, line: string): void {
  if (state === "running" || state === "children" || wide < HATCH) return;
  paint.save();
  paint.beginPath();
  paint.rect(x, y, wide, BAR);
  paint.clip();
  paint.strokeStyle = line;
  paint.beginPath();
  for (let at = Math.floor(x / HATCH) * HATCH - BAR; at < x + wide; at += HATCH) {
    if (state === "ready") {
      paint.moveTo(at + 0.5, y);
      paint.lineTo(at + 0.5, y + BAR);
      continue;
    }
    paint.moveTo(at, y + BAR);
    paint.lineTo(at + BAR, y);
    if (state === "blocked") {
      paint.moveTo(at, y);
      paint.lineTo(at + BAR, y + BAR);
    }
  }
  paint.stroke();
  paint.restore();
}

// Latency over time, one point per trace. A click opens a trace; a box drawn with the mouse filters.
import { useEffect, useRef, useState } from "preact/hooks";
import type { TraceList } from "../api";
import { duration, ticks, timeMarks, timeOfDay } from "../format";
import { colour, colours } from "../ui/theme";
import { go, set } from "../ui/url";
import { useWidth } from "../ui/virtual";
import { durationParam } from "./filters";

const HEIGHT = 150;
const LEFT = 56;
const BOTTOM = 20;
const TOP = 8;
const RIGHT = 10;
const NEAR = 12; // pixels within which a point is meant
const DRAG = 5; // pixels from which a movement is a box

interface Scale {
  x: (us: number) => number;
  y: (us: number) => number;
  timeAt: (x: number) => number;
  durationAt: (y: number) => number;
  from: number;
  until: number;
  most: number;
}

function scale(points: TraceList["scatter"], width: number): Scale {
  let from = Infinity;
  let until = -Infinity;
  let most = 1;
  for (let i = 0; i < points.start_us.length; i++) {
    from = Math.min(from, points.start_us[i]!);
    until = Math.max(until, points.start_us[i]!);
    most = Math.max(most, points.duration_us[i]!);
  }
  const span = Math.max(until - from, 1_000_000);
  const inner = Math.max(width - LEFT - RIGHT, 1);
  const high = HEIGHT - TOP - BOTTOM;
  return {
    x: (us) => LEFT + ((us - from) / span) * inner,
    y: (us) => TOP + (1 - us / most) * high,
    timeAt: (x) => from + ((x - LEFT) / inner) * span,
    durationAt: (y) => Math.max(0, (1 - (y - TOP) / high) * most),
    from,
    until: from + span,
    most,
  };
}

export function Scatter({ points, selected }: { points: TraceList["scatter"]; selected: string }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const [over, setOver] = useState(-1);
  const [drawn, setDrawn] = useState<[number, number, number, number] | null>(null);
  const begin = useRef<[number, number] | null>(null);
  const to = scale(points, width);

  useEffect(() => {
    if (width > 0) draw(canvas.current!, points, to, width, over, selected, drawn);
  }, [points, width, over, selected, drawn, colours.value]);

  const at = (event: MouseEvent): [number, number] => {
    const corner = canvas.current!.getBoundingClientRect();
    return [event.clientX - corner.left, event.clientY - corner.top];
  };
  const nearest = ([x, y]: [number, number]) => {
    let best = -1;
    let distance = NEAR ** 2;
    for (let i = 0; i < points.start_us.length; i++) {
      const d = (to.x(points.start_us[i]!) - x) ** 2 + (to.y(points.duration_us[i]!) - y) ** 2;
      if (d < distance) [best, distance] = [i, d];
    }
    return best;
  };
  const release = (event: MouseEvent) => {
    const start = begin.current;
    begin.current = null;
    setDrawn(null);
    if (!start) return;
    const [x, y] = at(event);
    if (Math.abs(x - start[0]) < DRAG && Math.abs(y - start[1]) < DRAG) {
      const point = nearest([x, y]);
      if (point >= 0) go(`/trace/${points.trace_id[point]}`);
      return;
    }
    set({
      from: Math.floor(to.timeAt(Math.min(x, start[0]))),
      to: Math.ceil(to.timeAt(Math.max(x, start[0]))),
      since: "",
      min: durationParam(to.durationAt(Math.max(y, start[1]))),
      max: durationParam(to.durationAt(Math.min(y, start[1]))),
    });
  };
  return (
    <div class="scatter" ref={box}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={`Latency over time of ${points.start_us.length} traces, up to ${duration(to.most)}. The list below holds the same traces.`}
        style={{ height: `${HEIGHT}px`, cursor: over >= 0 ? "pointer" : "crosshair" }}
        onMouseDown={(event) => (begin.current = at(event))}
        onMouseUp={release}
        onMouseLeave={() => {
          begin.current = null;
          setOver(-1);
          setDrawn(null);
        }}
        onMouseMove={(event) => {
          const place = at(event);
          if (begin.current) setDrawn([...begin.current, ...place]);
          else setOver(nearest(place));
        }}
      />
      {over >= 0 && (
        <span class="scatter-tip" style={{ left: `${Math.min(to.x(points.start_us[over]!), width - 150)}px`, top: `${to.y(points.duration_us[over]!)}px` }}>
          {duration(points.duration_us[over]!)} at {timeOfDay(points.start_us[over]!)}
        </span>
      )}
    </div>
  );
}

function draw(
  canvas: HTMLCanvasElement,
  points: TraceList["scatter"],
  to: Scale,
  width: number,
  over: number,
  selected: string,
  drawn: [number, number, number, number] | null,
): void {
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = HEIGHT * ratio;
  const paint = canvas.getContext("2d")!;
  paint.scale(ratio, ratio);
  paint.font = "11px system-ui, sans-serif";
  paint.textAlign = "right";
  const [line, dim, dot, bad, accent] = ["line", "dim", "dot", "blocked", "accent"].map(colour) as [string, string, string, string, string];
  for (const tick of ticks(to.most, 5)) {
    paint.fillStyle = line;
    paint.fillRect(LEFT, Math.round(to.y(tick)), width - LEFT - RIGHT, 1);
    paint.fillStyle = dim;
    paint.fillText(duration(tick), LEFT - 6, to.y(tick) + 4);
  }
  // Fewer than 3 might be none: from one step to the next the marks get up to 2.5 times as rare.
  for (const { us, text } of timeMarks(to.from, to.until, Math.max(3, Math.floor((width - LEFT) / 160)))) {
    const half = paint.measureText(text).width / 2;
    paint.textAlign = to.x(us) - half < LEFT ? "left" : to.x(us) + half > width ? "right" : "center";
    paint.fillText(text, to.x(us), HEIGHT - 4);
  }
  for (let i = 0; i < points.start_us.length; i++) {
    const marked = i === over || points.trace_id[i] === selected;
    paint.globalAlpha = marked ? 1 : 0.65;
    paint.fillStyle = marked ? accent : points.error[i] ? bad : dot;
    paint.beginPath();
    paint.arc(to.x(points.start_us[i]!), to.y(points.duration_us[i]!), marked ? 5 : 3, 0, 7);
    paint.fill();
  }
  paint.globalAlpha = 1;
  if (drawn) {
    paint.strokeStyle = accent;
    paint.strokeRect(drawn[0], drawn[1], drawn[2] - drawn[0], drawn[3] - drawn[1]);
  }
}

// One frame in words, and what can be done with it.
import type { Frame, Stacks } from "../api";
import { duration, percent, place, plural } from "../format";
import { status } from "../ui/answers";
import { SplitBar } from "../ui/split";
import { href, param, set } from "../ui/url";
import { editorUrl } from "./editor";
import { EditorLink, SourceLines } from "./source";
import { joinPatterns, patternOf, pathTo } from "./tree";

export function openSource(frame: Frame): boolean {
  const url = editorUrl(frame, status.value?.editor);
  if (url) open(url, "_blank", "noreferrer");
  return url !== null;
}

interface Props {
  stacks: Stacks;
  index: number;
  frame: Frame | null;
}

export function FrameBar({ stacks, index, frame }: Props) {
  if (!frame) return <p class="frame-bar dim">Choose a frame to see its numbers, its source and who called it.</p>;
  const { nodes } = stacks;
  const us = (column: number[]) => column[index] ?? 0;
  const samples = us(nodes.samples);
  const split = { running_us: us(nodes.running_us), waiting_us: us(nodes.waiting_us), ready_us: us(nodes.ready_us), blocked_us: us(nodes.blocked_us), not_sampled_us: 0 };
  const zoomed = Number(param("zoom")) || 0;
  const path = pathTo(nodes.parent, zoomed);
  return (
    <div class="frame-bar">
      {zoomed > 0 && (
        <nav class="crumbs small" aria-label="Zoomed into">
          {path.map((at, depth) => {
            const row = stacks.frames[nodes.frame[at]!];
            if (depth > 0 && depth < path.length - 3) return depth === 1 ? <span key={at}>… › </span> : null;
            return (
              <span key={at}>
                {at === zoomed ? <b>{row?.[0]}</b> : <button class="link" onClick={() => set({ zoom: at || "" })}>{row?.[0] ?? "all"}</button>}
                {at !== zoomed && " › "}
              </span>
            );
          })}
        </nav>
      )}
      <div>
        <code class="strong">{frame.function}</code> <EditorLink frame={frame}>{place(frame)}</EditorLink>
      </div>
      <div class="numbers">
        <span>
          total <b>{duration(us(nodes.total_us))}</b> ({percent(us(nodes.total_us), stacks.total_us)})
        </span>
        <span>itself {duration(us(nodes.self_us))}</span>
        <span title="How far chance alone may move these times, from the number of samples">
          {plural(samples, "sample")} ± {Math.round(100 * Math.min(1, 2 / Math.sqrt(Math.max(samples, 1))))} %
        </span>
        <span class="bar-wide">
          <SplitBar split={split} />
        </span>
      </div>
      <FrameActions frame={frame} />
    </div>
  );
}

export function FrameActions({ frame, weights }: { frame: Frame; weights?: Map<number, string> }) {
  const pattern = patternOf(frame);
  return (
    <div class="actions">
      <button onClick={() => set({ focus: pattern, zoom: "" })} title="Only stacks with this frame (f)">Only this</button>
      <button onClick={() => set({ hide: joinPatterns(param("hide"), pattern), fn: "", file: "", zoom: "" })} title="Leave this frame out (x)">Hide</button>
      <button onClick={() => set({ view: "sandwich" })} title="Callers and callees (3)">Sandwich</button>
      <a class="button" href={href("/traces", { fn: frame.function, file: frame.file })}>Traces with it</a>
      {frame.file && <SourceLines key={`${frame.file}:${frame.line}`} frame={frame} {...(weights ? { weights } : {})} />}
    </div>
  );
}

// One graph of both sides: widths are the larger side's time, colours the difference.
import { useMemo, useState } from "preact/hooks";
import type { Comparison } from "../api";
import { duration, signed } from "../format";
import { Graph } from "../stacks/graph";
import { deltaShade, frameLabel, frameOf } from "../stacks/tree";
import { param, set } from "../ui/url";

const SHADES = 5; // --more-1 … --more-5 of the style sheet, and as many for less

/** The time a node is drawn with: at least what its children need. */
export function widths(nodes: Comparison["nodes"]): number[] {
  const own = nodes.a_us.map((a, index) => Math.max(a, nodes.b_us[index]!));
  const below = own.map(() => 0);
  for (let index = own.length - 1; index >= 0; index--) {
    own[index] = Math.max(own[index]!, below[index]!);
    const parent = nodes.parent[index]!;
    if (parent >= 0) below[parent]! += own[index]!;
  }
  return own;
}

export function fillOfDelta(nodes: Comparison["nodes"], index: number): string {
  if (nodes.noise[index]) return "var(--same)";
  const shade = deltaShade(nodes, index);
  if (shade === 0) return "var(--same)";
  const step = Math.max(1, Math.ceil(Math.abs(shade) * SHADES));
  return `var(--${shade > 0 ? "more" : "less"}-${step})`;
}

export function DiffGraph({ data }: { data: Comparison }) {
  const { nodes, frames } = data;
  const [selected, setSelected] = useState(-1);
  const drawing = useMemo(
    () => ({
      value: widths(nodes),
      name: (index: number) => frameLabel(frameOf(frames, nodes.frame[index]!, nodes.line[index]!), "all"),
      fill: (index: number) => fillOfDelta(nodes, index),
    }),
    [data],
  );
  if (nodes.frame.length < 2) return null;
  const tip = (index: number) => {
    const [a, b] = [nodes.a_us[index]!, nodes.b_us[index]!];
    const only = a === 0 ? ", only in B" : b === 0 ? ", only in A" : "";
    return `${drawing.name(index)}: A ${duration(a)}, B ${duration(b)}, ${signed(b - a)}${only}${nodes.noise[index] ? ", within noise" : ""}`;
  };
  return (
    <section aria-label="Differences">
      <Graph
        label="Differences between A and B"
        parent={nodes.parent}
        value={drawing.value}
        name={drawing.name}
        fill={drawing.fill}
        tip={tip}
        rootOnTop={param("dir") !== "flame"}
        selected={selected}
        zoom={Number(param("zoom")) || 0}
        onSelect={setSelected}
        onZoom={(index) => set({ zoom: index || "" })}
      />
      <div class="graph-foot small dim">
        <span><i class="swatch more-4" /> takes more time in B</span>
        <span><i class="swatch less-4" /> takes less</span>
        <span><i class="swatch same" /> the same, or within what so few samples can tell</span>
        <span>width: the larger of both</span>
      </div>
      <p class="frame-bar">{selected >= 0 ? tip(selected) : <span class="dim">Choose a frame to see both sides of it.</span>}</p>
    </section>
  );
}

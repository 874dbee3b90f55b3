// One graph of both sides: widths are the larger side's time, colours the difference.
import { useMemo, useState } from "preact/hooks";
import type { Comparison } from "../api";
import { duration, signed } from "../format";
import { Graph } from "../stacks/graph";
import { frameLabel, frameOf } from "../stacks/tree";
import { param, set } from "../ui/url";
import { fillOfDelta, widths } from "./shades";

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
        own={(index) => frames[nodes.frame[index]!]?.[3] === "own"}
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

// One function in the middle: who calls it above, what it calls below.
import { useMemo, useState } from "preact/hooks";
import type { Sandwich, StackFilter } from "../api";
import { duration, percent, place, plural } from "../format";
import { api, useAnswer } from "../ui/answers";
import { SplitBar } from "../ui/split";
import { Wait } from "../ui/state";
import { param, set } from "../ui/url";
import { type ColourBy, fillOf } from "./colours";
import { FrameActions } from "./frame";
import { Graph } from "./graph";
import { EditorLink } from "./source";
import { frameLabel, frameOf } from "./tree";

export function SandwichView({ filter, chosen }: { filter: StackFilter; chosen: { function: string; file: string } }) {
  const { invert: _, ...rest } = filter;
  const answer = useAnswer<Sandwich>(api("sandwich", { ...rest, function: chosen.function, file: chosen.file }));
  return (
    <Wait answer={answer} what="callers and callees">
      {(data) => <Layers data={data} />}
    </Wait>
  );
}

function Layers({ data }: { data: Sandwich }) {
  const { row } = data;
  const weights = new Map(data.lines.map(([line, us]) => [line, percent(us, row.total_us)]));
  return (
    <div class="sandwich">
      <h3>Callers</h3>
      <Half stacks={data.callers} rootOnTop={false} name={row.function} />
      <div class="frame-bar">
        <code class="strong">{row.function}</code> <EditorLink frame={row}>{place(row)}</EditorLink>
        <div class="numbers">
          <span>total <b>{duration(row.total_us)}</b></span>
          <span>itself {duration(row.self_us)}</span>
          <span>{plural(row.samples, "sample")} ± {Math.round(row.margin * 100)} %</span>
          <span class="bar-wide"><SplitBar split={{ ...row, not_sampled_us: 0 }} /></span>
        </div>
        {data.lines.length > 0 && (
          <p class="small dim">
            lines: {data.lines.slice(0, 6).map(([line, us]) => `${line} (${percent(us, row.total_us)})`).join(", ")}
          </p>
        )}
        <FrameActions frame={row} weights={weights} />
      </div>
      <h3>Callees</h3>
      <Half stacks={data.callees} rootOnTop name={row.function} />
      {data.traces.length > 0 && (
        <>
          <h3>Traces with it <span class="dim small">by task time</span></h3>
          <ul class="plain">
            {data.traces.map((trace) => (
              <li key={trace.trace_id}>
                <a href={`/trace/${trace.trace_id}`}>{trace.operation}</a> {duration(trace.us)}
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

function Half({ stacks, rootOnTop, name: root }: { stacks: Sandwich["callers"]; rootOnTop: boolean; name: string }) {
  const [selected, setSelected] = useState(-1);
  const [zoom, setZoom] = useState(0);
  const { nodes, frames } = stacks;
  const by = (param("color") || "state") as ColourBy;
  const drawing = useMemo(
    () => ({
      name: (index: number) => frameLabel(frameOf(frames, nodes.frame[index]!, nodes.line[index]!), rootOnTop ? "what it calls" : "who calls it"),
      fill: fillOf(stacks, by),
    }),
    [stacks, by, rootOnTop],
  );
  if (nodes.frame.length < 2) return <p class="dim">{rootOnTop ? "It calls nothing that was seen." : "It is at the root of every stack."}</p>;
  const frame = frameOf(frames, nodes.frame[selected] ?? -1, nodes.line[selected] ?? 0);
  return (
    <>
      <Graph
        label={`${rootOnTop ? "Callees" : "Callers"} of ${root}`}
        parent={nodes.parent}
        value={nodes.total_us}
        name={drawing.name}
        fill={drawing.fill}
        own={(index) => stacks.frames[nodes.frame[index]!]?.[3] === "own"}
        tip={(index) => `${drawing.name(index)}: ${duration(nodes.total_us[index]!)}, ${percent(nodes.total_us[index]!, stacks.total_us)}`}
        rootOnTop={rootOnTop}
        selected={selected}
        zoom={zoom}
        onSelect={setSelected}
        onZoom={setZoom}
      />
      {frame && selected > 0 && (
        <p class="small">
          <code>{frame.function}</code> {place(frame)} {duration(nodes.total_us[selected]!)}{" "}
          <button onClick={() => set({ fn: frame.function, file: frame.file })}>Put into the middle</button>
        </p>
      )}
    </>
  );
}

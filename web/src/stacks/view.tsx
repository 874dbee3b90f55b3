// The stacks of a span, an operation, a query or everything: graph, table or sandwich, with search and filters.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Frame, StackFilter, Stacks } from "../api";
import { duration, percent, plural } from "../format";
import { api, useAnswer } from "../ui/answers";
import { Field } from "../ui/field";
import { useKeys } from "../ui/keys";
import { Note, ThinNote, Wait } from "../ui/state";
import { say } from "../ui/toast";
import { param, set } from "../ui/url";
import { type ColourBy, ColourLegend, COLOURINGS, fillOf } from "./colours";
import { FrameBar, openSource } from "./frame";
import { isSum, SCOPES, scope, stackFilter } from "./filter";
import { Graph } from "./graph";
import { SandwichView } from "./sandwich";
import { FunctionTable } from "./table";
import { frameLabel, frameOf, joinPatterns, patternOf } from "./tree";

const VIEWS: [string, string, string][] = [
  ["", "Graph", "1"],
  ["table", "Table", "2"],
  ["sandwich", "Sandwich", "3"],
];

const CPU: [string, string] = ["cpu", "CPU time"];
const WEIGHTS: Record<"trace" | "query" | "all", [string, string][]> = {
  trace: [["elapsed", "elapsed time"], ["task", "task time"], CPU],
  query: [["elapsed", "time of all its runs"], CPU],
  all: [["elapsed", "time of all tasks and threads"], CPU],
};

const hasFrames = (stacks: Stacks) => stacks.total_us > 0 && stacks.nodes.frame.length > 1;

interface Props {
  base: StackFilter;
  root: string; // what the whole is called
  again?: unknown; // asks anew when it changes
}

export function StackView({ base, root, again }: Props) {
  const filter = stackFilter(base);
  const answer = useAnswer<Stacks>(api("stacks", filter), again);
  const view = param("view");
  const chosen = { function: param("fn"), file: param("file") };
  const scopes = SCOPES.map(([name]) => name);
  const widen = (by: number) => base.span && set({ scope: scopes[Math.min(2, Math.max(0, scopes.indexOf(scope()) + by))] });
  const onFrame = (act: (frame: { function: string; file: string }) => void) => () =>
    chosen.function ? act(chosen) : say("Choose a frame first");
  useKeys({
    "1": () => set({ view: "" }),
    "2": () => set({ view: "table" }),
    "3": onFrame(() => set({ view: "sandwich" })),
    "[": () => widen(-1),
    "]": () => widen(1),
    i: () => set({ dir: param("dir") ? "" : "flame" }),
    c: () => set({ invert: param("invert") ? "" : "1", zoom: "" }),
    r: () => set({ recursion: param("recursion") ? "" : "0", zoom: "" }),
    f: onFrame((frame) => set({ focus: patternOf(frame), zoom: "" })),
    x: onFrame((frame) => set({ hide: joinPatterns(param("hide"), patternOf(frame)), fn: "", file: "", zoom: "" })),
    e: () => document.querySelector<HTMLElement>(".exports summary")?.click(),
  });
  return (
    <div class="stacks">
      <Toolbar base={base} />
      <Search base={base} answer={answer.data} />
      {answer.data?.thin && hasFrames(answer.data) && <ThinNote thin={answer.data.thin} />}
      {view === "table" ? (
        <FunctionTable filter={filter} again={again} />
      ) : view === "sandwich" && chosen.function ? (
        <SandwichView filter={filter} chosen={chosen} />
      ) : (
        <Wait answer={answer} what="stacks">
          {(stacks) => (view === "sandwich" ? <Note>Choose a frame in the graph or the table; its callers and callees are then shown here.</Note> : <StackGraph stacks={stacks} root={root} base={base} />)}
        </Wait>
      )}
    </div>
  );
}

function Toolbar({ base }: { base: StackFilter }) {
  return (
    <div class="toolbar">
      <span class="tabs" role="group" aria-label="View">
        {VIEWS.map(([name, text, key]) => (
          <button key={name} aria-pressed={param("view") === name} title={`${text} (${key})`} onClick={() => set({ view: name })}>
            {text}
          </button>
        ))}
      </span>
      {base.span && (
        <span class="tabs" role="group" aria-label="Scope">
          {SCOPES.map(([name, text, meaning]) => (
            <button key={name} aria-pressed={scope() === name} title={`${meaning} ([ and ])`} onClick={() => set({ scope: name === "self" ? "" : name, zoom: "" })}>
              {text}
            </button>
          ))}
        </span>
      )}
      <Toggle name="invert" text="callers first" title="Leaf first: who called (c)" />
      <Toggle name="dir" value="flame" text="root below" title="Root at the bottom, as in a flame graph (i)" />
      <Toggle name="library" value="0" text="hide libraries" title="Leave out installed packages and the standard library" />
      <Toggle name="recursion" value="0" text="fold recursion" title="Each function once in a stack (r)" />
      <Toggle name="by" value="line" text="by line" title="One node per line instead of per function" />
    </div>
  );
}

function Select({ name, label, options }: { name: string; label: string; options: [string, string][] }) {
  const first = options[0]![0];
  return (
    <label class="dim">
      {label}{" "}
      <select value={param(name) || first} onChange={(event) => set({ [name]: event.currentTarget.value === first ? "" : event.currentTarget.value })}>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

function Toggle({ name, value = "1", text, title }: { name: string; value?: string; text: string; title: string }) {
  const on = param(name) === value;
  return (
    <button aria-pressed={on} title={title} onClick={() => set({ [name]: on ? "" : value, zoom: "" })}>
      {text}
    </button>
  );
}

function Search({ base, answer }: { base: StackFilter; answer: Stacks | null }) {
  const limits: [string, string][] = [
    ["state", `only ${param("state").replace(/,/g, " and ")}`],
    ["t0", `from ${duration(Number(param("t0")))} to ${duration(Number(param("t1")))}`],
    ["task", `only task ${param("task")}`],
  ];
  return (
    <div class="toolbar">
      <Field name="find" label="Find" hint="regular expression" search size={22} />
      {param("find") && answer && (
        <span class="matches" role="status">
          {plural(answer.matches.nodes, "match", "matches")}, <b>{percent(answer.matches.us, answer.total_us)}</b>
          {answer.find_error && <span class="bad"> taken as text: {answer.find_error}</span>}
        </span>
      )}
      <Field name="focus" label="Only stacks with" hint="regular expression" size={18} />
      <Field name="hide" label="Hide frames" hint="regular expression" size={18} />
      <Select name="color" label="Colour" options={COLOURINGS} />
      <Select name="weight" label="Weight" options={WEIGHTS[base.query ? "query" : isSum(base) ? "all" : "trace"]} />
      {limits.map(([name, text]) => param(name) && (
        <span key={name} class="chip">
          {text} <button aria-label={`Remove: ${text}`} onClick={() => set(name === "t0" ? { t0: "", t1: "" } : { [name]: "" })}>×</button>
        </span>
      ))}
    </div>
  );
}

function StackGraph({ stacks, root, base }: { stacks: Stacks; root: string; base: StackFilter }) {
  const { nodes, frames } = stacks;
  const by = (param("color") || "state") as ColourBy;
  const finding = param("find") !== "";
  const frame = (index: number): Frame | null => frameOf(frames, nodes.frame[index]!, nodes.line[index]!);
  const drawing = useMemo(
    () => ({
      name: (index: number) => frameLabel(frameOf(frames, nodes.frame[index]!, nodes.line[index]!), root),
      fill: fillOf(stacks, by),
    }),
    [stacks, by, root],
  );
  const tip = (index: number) =>
    `${frameLabel(frameOf(frames, nodes.frame[index]!, nodes.line[index]!), root)}: ${duration(nodes.total_us[index]!)}, ${percent(nodes.total_us[index]!, stacks.total_us)}, itself ${duration(nodes.self_us[index]!)}`;
  const [selected, setSelected] = useState(-1);
  const wanted = `${param("fn")} ${param("file")}`;
  const isWanted = (index: number) => {
    const row = frames[nodes.frame[index]!];
    return row !== undefined && `${row[0]} ${row[1]}` === wanted;
  };
  useEffect(() => {
    if (selected >= 0 && selected < nodes.frame.length && isWanted(selected)) return;
    setSelected(param("fn") ? nodes.frame.findIndex((_, index) => isWanted(index)) : -1);
  }, [stacks, wanted]);
  const select = (index: number) => {
    setSelected(index);
    const row = frames[nodes.frame[index]!];
    set({ fn: row?.[0], file: row?.[1] }, true);
  };
  const step = (by_: 1 | -1) => {
    const matching = nodes.match.flatMap((match, index) => (match ? [index] : []));
    if (matching.length === 0) return say(finding ? "No frame matches" : "Nothing is searched for");
    const next = by_ > 0 ? matching.find((index) => index > selected) : matching.findLast((index) => index < selected);
    select(next ?? (by_ > 0 ? matching[0]! : matching.at(-1)!));
  };
  useKeys({
    n: () => step(1),
    N: () => step(-1),
    o: () => {
      const chosen = selected >= 0 ? frame(selected) : null;
      if (!chosen || !openSource(chosen)) say("No editor is set, or no frame is chosen: serve --editor vscode");
    },
    ...(Number(param("zoom")) > 0 ? { "0": () => set({ zoom: "" }), Escape: () => set({ zoom: "" }) } : {}),
  });
  if (!hasFrames(stacks)) return <NoStacks stacks={stacks} base={base} />;
  return (
    <>
      <Graph
        label={`Stacks of ${root}, ${plural(stacks.samples, "sample")}`}
        parent={nodes.parent}
        value={nodes.total_us}
        name={drawing.name}
        fill={drawing.fill}
        own={(index) => frame(index)?.kind === "own"}
        tip={tip}
        match={finding ? nodes.match : undefined}
        rootOnTop={param("dir") !== "flame"}
        selected={selected}
        zoom={Number(param("zoom")) || 0}
        onSelect={select}
        onZoom={(index) => set({ zoom: index || "" })}
      />
      <div class="graph-foot">
        <ColourLegend stacks={stacks} by={by} />
        <span class="dim small">
          {plural(stacks.samples, "sample")}, {duration(stacks.total_us)}
          {stacks.duration_us > 0 ? ` of ${duration(stacks.duration_us)}` : isSum(base) && " of all tasks and threads together"}
          {stacks.pruned > 0 && `; ${plural(stacks.pruned, "very small frame")} left out`}
        </span>
      </div>
      <FrameBar stacks={stacks} index={selected} frame={selected >= 0 ? frame(selected) : null} />
    </>
  );
}

function NoStacks({ stacks, base }: { stacks: Stacks; base: StackFilter }) {
  const narrowed = ["state", "t0", "task", "focus", "hide"].filter((name) => param(name));
  const wider = base.span && scope() !== "trace" && (
    <button onClick={() => set({ scope: scope() === "self" ? "children" : "trace" })}>
      {scope() === "self" ? "Show with children" : "Show the whole trace"}
    </button>
  );
  if (narrowed.length > 0) {
    return (
      <Note>
        No stack is left under these filters.{" "}
        <button onClick={() => set({ state: "", t0: "", t1: "", task: "", focus: "", hide: "" })}>Remove them</button> {wider}
      </Note>
    );
  }
  if (stacks.thin) return <ThinNote thin={stacks.thin}>{wider}</ThinNote>;
  return <Note>No samples here. {wider}</Note>;
}

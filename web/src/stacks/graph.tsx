// A flame graph or icicle: d3-flame-graph draws, this adds the keyboard, the marks and the words for screen readers.
import flamegraph, { type Chart, type Drawn } from "d3-flame-graph";
import { select } from "d3-selection";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useWidth } from "../ui/virtual";
import { depth, type GraphNode, neighbour, nest } from "./tree";

const CELL = 19;
const LEAST_WIDTH = 1; // pixels of a frame that is drawn

function both(keys: string[], act: () => void): Record<string, () => void> {
  return Object.fromEntries(keys.map((key) => [key, act]));
}

interface Props {
  label: string;
  parent: number[];
  value: number[];
  name: (index: number) => string;
  tip: (index: number) => string;
  fill: (index: number) => string; // as SVG has it: var(--running), url(#pattern-ready)
  own: (index: number) => boolean; // of the application itself: stands out
  match?: (0 | 1)[] | undefined; // given: what does not match is dimmed
  rootOnTop: boolean;
  selected: number; // -1: none
  zoom: number; // the node that fills the width
  onSelect: (index: number) => void;
  onZoom: (index: number) => void;
}

export function Graph(props: Props) {
  const { parent, value, rootOnTop, selected, zoom, match } = props;
  const box = useRef<HTMLDivElement>(null);
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart<GraphNode> | null>(null);
  const drawn = useRef<Drawn<GraphNode>[]>([]);
  const now = useRef(props);
  now.current = props;
  const quiet = useRef(false); // zoomed by us, not by a click
  const width = useWidth(box);

  const decorate = () => {
    const { match: matching, selected: chosen, name, own } = now.current;
    const frames = select(place.current!).selectAll<SVGGElement, Drawn<GraphNode>>("g.frame");
    // The library lets new frames grow for a quarter of a second; what is already as it shall be does not move.
    frames.each(function (node) {
      this.querySelector("rect")!.setAttribute("width", this.getAttribute("width")!);
      this.querySelector("div")!.textContent = name(node.data.index);
    });
    frames
      .classed("match", (node) => matching?.[node.data.index] === 1)
      .classed("own", (node) => own(node.data.index))
      .classed("selected", (node) => node.data.index === chosen);
  };

  useLayoutEffect(() => {
    const element = place.current!;
    if (width === 0 || value.length === 0) return;
    const { name } = props;
    const made = flamegraph<GraphNode>()
      .width(width)
      .height((depth(parent) + 1) * CELL)
      .cellHeight(CELL)
      .transitionDuration(0)
      .minFrameSize(LEAST_WIDTH)
      .inverted(rootOnTop)
      .sort(false)
      .label((node) => now.current.tip(node.data.index))
      .color((node) => now.current.fill(node.data.index))
      .onClick((node) => {
        decorate();
        if (quiet.current) return;
        now.current.onSelect(node.data.index);
        now.current.onZoom(node.data.index);
      });
    made(select(element as HTMLElement).datum(nest(parent, value, name)));
    drawn.current = [];
    (select(element).datum() as unknown as Drawn<GraphNode>).each((node) => (drawn.current[node.data.index] = node));
    chart.current = made;
    decorate();
    return () => {
      made.destroy();
      element.replaceChildren();
      chart.current = null;
    };
  }, [parent, value, width, rootOnTop, props.name, props.fill]);

  useEffect(() => {
    const target = drawn.current[zoom];
    if (!chart.current || !target || (zoom === 0 && !target.data.fade)) return decorate();
    quiet.current = true;
    chart.current.zoomTo(target);
    quiet.current = false;
  }, [zoom, parent, value, width, rootOnTop, props.name, props.fill]);

  useEffect(decorate, [selected, match]);
  useEffect(() => {
    place.current?.querySelector("g.selected")?.scrollIntoView({ block: "nearest" });
  }, [selected]);

  const move = (direction: Parameters<typeof neighbour>[2]) => props.onSelect(neighbour(parent, Math.max(selected, 0), direction));
  const keys: Record<string, () => void> = {
    ...both(["ArrowLeft", "a"], () => move("previous")),
    ...both(["ArrowRight", "d"], () => move("next")),
    ArrowUp: () => move(rootOnTop ? "parent" : "child"),
    ArrowDown: () => move(rootOnTop ? "child" : "parent"),
    Home: () => props.onSelect(0),
    ...both(["Enter", "w", "+"], () => props.onZoom(Math.max(selected, 0))),
    ...both(["s", "-"], () => props.onZoom(Math.max(parent[zoom] ?? 0, 0))),
    "0": () => props.onZoom(0),
    ...(zoom > 0 ? { Escape: () => props.onZoom(0) } : {}),
  };
  return (
    <div
      ref={box}
      class={`graph ${match ? "finding" : ""}`}
      tabIndex={0}
      role="group"
      aria-roledescription="flame graph"
      aria-label={`${props.label}. Arrow keys go from frame to frame, Enter zooms in, S zooms out, 0 zooms out fully. The table holds the same stacks.`}
      onKeyDown={(event) => {
        const act = keys[event.key];
        if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        act();
      }}
    >
      <div ref={place} aria-hidden="true" />
      <span class="hidden" aria-live="polite">{selected >= 0 && selected < value.length ? props.tip(selected) : ""}</span>
    </div>
  );
}

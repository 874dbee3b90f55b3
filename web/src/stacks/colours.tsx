// What the colours of a graph mean.
import type { Stacks } from "../api";
import { PART_NAMES, STATES } from "../ui/split";
import { frameOf, hueOf, mainState, packageOf } from "./tree";

export type ColourBy = "state" | "package" | "kind";
export const COLOURINGS: [ColourBy, string][] = [
  ["state", "state"],
  ["package", "package"],
  ["kind", "own or library"],
];

const KINDS = { own: "kind-own", installed: "kind-installed", standard: "kind-standard", none: "kind-none" };
const KIND_NAMES = { own: "the application's own", installed: "installed packages", standard: "standard library", none: "not Python" };

export function fillOf(stacks: Pick<Stacks, "frames" | "nodes">, by: ColourBy): (index: number) => string {
  return (index) => {
    const frame = frameOf(stacks.frames, stacks.nodes.frame[index]!, 0);
    if (!frame) return "var(--root)";
    if (by === "state") return `url(#pattern-${mainState(stacks.nodes, index)})`;
    if (by === "kind") return `var(--${KINDS[frame.kind]})`;
    return `var(--hue-${hueOf(packageOf(frame.file))})`;
  };
}

/** The patterns of the states, so that they can be told apart without colours; once per page. */
export function Patterns() {
  return (
    <svg class="defs" width="0" height="0" aria-hidden="true">
      <defs>
        {STATES.map((state) => (
          <pattern key={state} id={`pattern-${state}`} width="8" height="8" patternUnits="userSpaceOnUse">
            <rect width="8" height="8" fill={`var(--${state})`} />
            {state === "waiting" && <path d="M-2 6 L6 -2 M2 10 L10 2" class="hatch" />}
            {state === "ready" && <path d="M2 0 V8 M6 0 V8" class="hatch" />}
            {state === "blocked" && <path d="M0 0 L8 8 M8 0 L0 8" class="hatch" />}
          </pattern>
        ))}
      </defs>
    </svg>
  );
}

export function ColourLegend({ stacks, by }: { stacks: Stacks; by: ColourBy }) {
  return (
    <span class="colour-legend dim small">
      {by === "state" && STATES.map((state) => <Item key={state} swatch={`fill-${state}`} text={PART_NAMES[state]} />)}
      {by === "kind" && Object.entries(KINDS).slice(0, 3).map(([kind, name]) => <Item key={kind} swatch={name} text={KIND_NAMES[kind as keyof typeof KINDS]} />)}
      {by === "package" && packages(stacks).map((name) => <Item key={name} swatch={`hue-${hueOf(name)}`} text={name} />)}
    </span>
  );
}

function Item({ swatch, text }: { swatch: string; text: string }) {
  return (
    <span>
      <i class={`swatch ${swatch}`} /> {text}
    </span>
  );
}

const PACKAGES_NAMED = 8;

function packages(stacks: Stacks): string[] {
  const self = new Map<string, number>();
  stacks.nodes.frame.forEach((at, index) => {
    const frame = stacks.frames[at];
    if (!frame?.[1]) return;
    const name = packageOf(frame[1]);
    self.set(name, (self.get(name) ?? 0) + stacks.nodes.total_us[index]!);
  });
  return [...self].sort((a, b) => b[1] - a[1]).slice(0, PACKAGES_NAMED).map(([name]) => name);
}

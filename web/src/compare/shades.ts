// How a comparison is drawn: widths and colours.
import type { Comparison } from "../api";

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

/** How much a difference colours a node, -1 (less time) to 1 (more), by its share of the larger side. */
function deltaShade(nodes: Comparison["nodes"], index: number): number {
  const a = nodes.a_us[index]!;
  const b = nodes.b_us[index]!;
  const whole = Math.max(nodes.a_us[0] ?? 0, nodes.b_us[0] ?? 0, 1);
  const delta = (b - a) / whole;
  return Math.sign(delta) * Math.min(1, Math.sqrt(Math.abs(delta)) * 1.6);
}

const LEAST_SELF = 0.01; // of the larger side, from which a library's function is worth a row

/** The application's functions and those in which time itself differs, without all that only lies between them. */
export function differing({ functions, frames, a, b }: Pick<Comparison, "functions" | "frames" | "a" | "b">): Comparison["functions"] {
  const least = LEAST_SELF * Math.max(a.mean_us, b.mean_us);
  return functions
    .filter((row) => frames[row.frame]?.[3] === "own" || Math.abs(row.b_self_us - row.a_self_us) >= least)
    .sort((x, y) => Math.abs(y.b_us - y.a_us) - Math.abs(x.b_us - x.a_us));
}

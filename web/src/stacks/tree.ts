// Trees as the server sends them (one array per column, parents before children) and what the graph draws of them.
import type { Frame, Stacks, State } from "../api";
import { shortFile } from "../format";
import { STATES } from "../ui/split";

export interface GraphNode {
  index: number;
  name: string;
  value: number;
  children?: GraphNode[];
}

/** Nested objects for the drawing library. */
export function nest(parent: number[], value: number[], name: (index: number) => string): GraphNode {
  const nodes: GraphNode[] = value.map((us, index) => ({ index, name: name(index), value: us }));
  for (let index = 1; index < nodes.length; index++) {
    const above = nodes[parent[index]!]!;
    (above.children ??= []).push(nodes[index]!);
  }
  return nodes[0] ?? { index: 0, name: "", value: 0 };
}

/** Of the deepest node; the root's is 0. */
export function depth(parent: number[]): number {
  const depths: number[] = [];
  let deepest = 0;
  for (const [index, above] of parent.entries()) {
    depths[index] = above < 0 ? 0 : depths[above]! + 1;
    deepest = Math.max(deepest, depths[index]);
  }
  return deepest;
}

/** The nodes from the root to this one. */
export function pathTo(parent: number[], index: number): number[] {
  const path = [];
  for (let at = index; at >= 0; at = parent[at] ?? -1) path.push(at);
  return path.reverse();
}

export type Direction = "parent" | "child" | "previous" | "next";

/** The neighbour in a graph; the node itself where there is none. Siblings stand in order of their index. */
export function neighbour(parent: number[], index: number, direction: Direction): number {
  if (direction === "parent") return Math.max(0, parent[index] ?? 0);
  if (direction === "child") {
    const child = parent.indexOf(index, index + 1);
    return child < 0 ? index : child;
  }
  const above = parent[index] ?? -1;
  if (above < 0) return index;
  const sibling = direction === "next" ? parent.indexOf(above, index + 1) : parent.lastIndexOf(above, index - 1);
  return sibling <= 0 ? index : sibling;
}

/** The state with most time. */
export function mainState(nodes: Stacks["nodes"], index: number): State {
  let best: State = "waiting";
  let most = -1;
  for (const state of STATES) {
    const us = nodes[`${state}_us`][index]!;
    if (us > most) [best, most] = [state, us];
  }
  return best;
}

type FrameRow = Stacks["frames"][number];

export function frameOf(frames: FrameRow[], at: number, line: number): Frame | null {
  const row = frames[at];
  return row ? { function: row[0], file: row[1], line, first_line: row[2], kind: row[3] } : null;
}

export function frameLabel(frame: Frame | null, root: string): string {
  if (!frame) return root;
  return frame.file ? `${frame.function}  ${shortFile(frame.file)}:${frame.line}` : frame.function;
}

/** A name for what a file belongs to: the installed package, the standard library's module, or the own directory. */
export function packageOf(file: string): string {
  const parts = file.split("/");
  const site = Math.max(parts.lastIndexOf("site-packages"), parts.lastIndexOf("dist-packages"));
  if (site >= 0) return (parts[site + 1] ?? "").replace(/\.py$/, "");
  const standard = parts.findIndex((part) => /^python3\.\d+$/.test(part));
  if (standard >= 0) return (parts[standard + 1] ?? "").replace(/\.py$/, "");
  return parts.at(-2) || file;
}

const HUES = 12;

/** One of twelve colours, the same for the same name. */
export function hueOf(name: string): number {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + letter.codePointAt(0)!) % 65_521;
  return hash % HUES;
}

export function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** A pattern for the server that matches exactly this function of this file. */
export function patternOf(frame: { function: string; file: string }): string {
  return `^${escapePattern(frame.function)} .*${escapePattern(shortFile(frame.file))}:`;
}

export function joinPatterns(before: string, added: string): string {
  return before && before !== added ? `${before}|${added}` : added;
}

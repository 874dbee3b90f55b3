import type { Span } from "../api";

/** Indices of the spans that are in no collapsed one. */
export function visible(spans: Span[], closed: Set<number>): number[] {
  const rows: number[] = [];
  let hiddenBelow = Infinity;
  spans.forEach((span, index) => {
    if (span.depth > hiddenBelow) return;
    hiddenBelow = closed.has(index) ? span.depth : Infinity;
    rows.push(index);
  });
  return rows;
}

import { expect, test } from "vitest";
import { HOLDERS, TRACES } from "../../mock/world";
import { findings, firstSpan, union } from "../../src/trace/verdict";
import { visible } from "../../src/trace/rows";

const order = TRACES[0]!;

test("time of parallel spans counts once", () => {
  expect(union([[0, 10], [5, 15], [20, 30], [22, 25]])).toBe(25);
});

test("the query comes first, with its runs, its caller and the hint; then who held the loop", () => {
  const [query, held, ...rest] = findings(order, HOLDERS);
  expect([query!.kind, query!.runs, query!.us, query!.caller?.line, query!.repeated]).toEqual(["query", 17, 17 * 60_000, 88, true]);
  expect([held!.kind, held!.us, held!.name]).toEqual(["held", 310_000, "pdf.render"]);
  expect(rest.map((one) => one.kind)).toEqual(["running"]);
});

test("the span that explains most is shown first", () => {
  expect(order.spans[firstSpan(order)]!.query_id).toBe(7);
  expect(TRACES[1]!.spans[firstSpan(TRACES[1]!)]!.name).toBe("pdf.render");
});

test("what is below a collapsed span is not listed", () => {
  expect(visible(order.spans, new Set([2]))).toEqual([0, 1, 2]);
  expect(visible(order.spans, new Set([0]))).toEqual([0]);
  expect(visible(order.spans, new Set())).toHaveLength(order.spans.length);
});

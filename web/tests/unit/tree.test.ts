import { expect, test } from "vitest";
import { differing, fillOfDelta, widths } from "../../src/compare/shades";
import { depth, nest, neighbour, packageOf, pathTo, patternOf } from "../../src/stacks/tree";
import { editorUrl } from "../../src/stacks/editor";

//     0
//   1   4
//  2 3
const parent = [-1, 0, 1, 1, 0];

test("columns become nested nodes in their order", () => {
  const name = (index: number) => `n${index}`;
  expect(nest(parent, [10, 7, 4, 3, 3], name)).toEqual({
    index: 0, name: "n0", value: 10,
    children: [
      { index: 1, name: "n1", value: 7, children: [{ index: 2, name: "n2", value: 4 }, { index: 3, name: "n3", value: 3 }] },
      { index: 4, name: "n4", value: 3 },
    ],
  });
  expect([depth(parent), pathTo(parent, 3)]).toEqual([2, [0, 1, 3]]);
});

test("arrows go to the neighbours, and stay where there is none", () => {
  const from = (index: number) => (["parent", "child", "previous", "next"] as const).map((direction) => neighbour(parent, index, direction));
  expect([0, 1, 2, 3, 4].map(from)).toEqual([[0, 1, 0, 0], [0, 2, 1, 4], [1, 2, 2, 3], [1, 3, 2, 3], [0, 4, 1, 4]]);
});

test("a pattern matches its own function only", () => {
  const pattern = new RegExp(patternOf({ function: "f.<locals>.g", file: "/a/b/c.py" }));
  const texts = ["f.<locals>.g /a/b/c.py:3", "xf.<locals>.g /a/b/c.py:3", "f.<locals>.gg /a/b/c.py:3", "f.<locals>.g /a/b/cXpy:3"];
  expect(texts.map((text) => pattern.test(text))).toEqual([true, false, false, false]);
});

test("a file belongs to a package, to a module of the standard library, or to its folder", () => {
  const files = ["/v/lib/python3.12/site-packages/asyncpg/pool.py", "/usr/lib/python3.12/json/decoder.py", "/usr/lib/python3.12/csv.py", "/srv/shop/api.py"];
  expect(files.map(packageOf)).toEqual(["asyncpg", "json", "csv", "shop"]);
});

test("only a known editor's address becomes a link", () => {
  const frame = { file: "/srv/a b?.py", line: 7 };
  expect(editorUrl(frame, "vscode://file/{file}:{line}")).toBe("vscode://file//srv/a%20b%3F.py:7");
  expect(editorUrl(frame, "javascript:alert('{file}')")).toBeNull();
  expect(editorUrl({ file: "relative.py", line: 1 }, "vscode://file/{file}")).toBeNull();
});

const nodes = { parent: [-1, 0, 0], frame: [-1, 0, 1], line: [0, 1, 1], a_us: [100, 90, 0], b_us: [100, 10, 90], noise: [0, 0, 0] as (0 | 1)[] };

test("a compared node is as wide as what is below it needs", () => {
  expect(widths(nodes)).toEqual([180, 90, 90]);
});

test("more and less have their own shades, and noise has none", () => {
  expect([0, 1, 2].map((index) => fillOfDelta(nodes, index))).toEqual(["var(--same)", "var(--less-5)", "var(--more-5)"]);
  expect(fillOfDelta({ ...nodes, noise: [1, 1, 1] }, 2)).toBe("var(--same)");
});

test("what only lies between two functions that differ is not listed", () => {
  const side = { selector: "", label: "", runs: 1, mean_us: 1000, split: { running_us: 0, waiting_us: 0, ready_us: 0, blocked_us: 0, not_sampled_us: 0 }, samples: 1, queries_per_run: 0 };
  const row = (frame: number, b_us: number, b_self_us: number) => ({ frame, line: 1, a_us: 0, b_us, a_self_us: 0, b_self_us, noise: false });
  const frames = (["installed", "own", "installed"] as const).map((kind, i): [string, string, number, typeof kind] => [`f${i}`, "x.py", 1, kind]);
  expect(differing({ a: side, b: side, frames, functions: [row(0, 900, 0), row(2, 300, 300), row(1, 800, 0)] }).map((one) => one.frame)).toEqual([1, 2]);
});

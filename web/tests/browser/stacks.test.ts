// The graph, the table and the sandwich show the same stacks; search, filters and the address work on all of them.
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import type { Page } from "playwright-core";
import { id } from "../../mock/world";
import { visit } from "./setup";

const WHOLE = `/trace/${id(1)}?scope=trace`;
const frame = (page: Page, name: string) => page.locator("g.frame", { hasText: name }).first();

test("a chosen frame says its numbers, and they are those of the table", async () => {
  const page = await visit(WHOLE);
  await frame(page, "fetch_lines").click();
  const numbers = page.locator(".frame-bar .numbers");
  await numbers.waitFor();
  expect(await numbers.innerText()).toMatch(/total 1\.02 s \(66 %\)\s+itself 0 ms/);
  await page.getByRole("button", { name: "Table", exact: true }).click();
  const row = page.getByRole("row", { name: /fetch_lines/ });
  await row.waitFor();
  expect(await row.innerText()).toMatch(/0 ms 0 %\s+1\.02 s 66 %/);
});

test("a search marks what matches and says its share, in the address too", async () => {
  const page = await visit(WHOLE);
  await page.getByLabel("Find", { exact: true }).fill("fetch.*service");
  await page.locator(".matches").getByText("66 %").waitFor();
  await page.waitForFunction(() => document.querySelectorAll("g.frame.match").length === 1);
  expect(new URL(page.url()).searchParams.get("find")).toBe("fetch.*service");
  await page.reload();
  await page.locator(".matches").getByText("66 %").waitFor();
});

test("what is no regular expression is taken as text, and that is said", async () => {
  const page = await visit(`${WHOLE}&find=fetch(`);
  await page.locator(".matches").getByText("taken as text").waitFor();
});

test("a hidden frame is gone from graph and table, and x and f do it by keyboard", async () => {
  const page = await visit(WHOLE);
  await frame(page, "load_order").click();
  await page.keyboard.press("x");
  await page.waitForFunction(() => !document.querySelector(".graph")?.textContent?.includes("load_order"));
  await frame(page, "fetch_lines").click();
  await page.keyboard.press("f");
  await page.getByText("1.02 s of 1.84 s").waitFor();
  expect(new URL(page.url()).searchParams.get("hide")).toBe("^load_order .*orders/service\\.py:");
});

test("a state is one click, and only its stacks stay", async () => {
  const page = await visit(WHOLE);
  await page.locator(".legend button", { hasText: "ready" }).click();
  await page.getByText("33 samples, 330 ms of 1.84 s").waitFor();
  expect(new URL(page.url()).searchParams.get("state")).toBe("ready");
  await page.goBack();
  await page.getByText("155 samples").last().waitFor();
});

test("the graph is walked with the arrow keys, zoomed with Enter and 0", async () => {
  const page = await visit(`/trace/${id(1)}?scope=trace`);
  const graph = page.getByRole("group", { name: /^Stacks of/ });
  await graph.waitFor();
  await graph.focus();
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
  await page.waitForFunction(() => location.search.includes("zoom=5"));
  const spoken = graph.locator("[aria-live]");
  expect(await spoken.innerText()).toMatch(/^load_order\s+orders\/service\.py:60: 1\.08 s, 70 %, itself 60 ms$/);
  const width = () => page.locator("g.frame.selected").evaluate((g) => Number(g.getAttribute("width")));
  const zoomed = await width();
  await page.keyboard.press("0");
  await page.waitForFunction(() => !location.search.includes("zoom"));
  expect(await width()).toBeLessThan(zoomed * 0.75);
});

test("w and s zoom the graph as well, + and - too", async () => {
  const page = await visit(WHOLE);
  const graph = page.getByRole("group", { name: /^Stacks of/ });
  await graph.waitFor();
  await graph.focus();
  const zoomed = (to: string) => page.waitForFunction((wanted) => (new URLSearchParams(location.search).get("zoom") ?? "") === wanted, to);
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "w"]) await page.keyboard.press(key);
  await zoomed("3");
  await page.keyboard.press("s");
  await zoomed("2");
  await page.keyboard.press("+");
  await zoomed("3");
  await page.keyboard.press("-");
  await zoomed("2");
});

test("a and d go to the frame beside the chosen one, as the arrows do", async () => {
  const page = await visit(WHOLE);
  const graph = page.getByRole("group", { name: /^Stacks of/ });
  await graph.waitFor();
  await graph.focus();
  const at = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key);
    return (await graph.locator("[aria-live]").innerText()).split(/\s/)[0];
  };
  expect(await at(...Array<string>(5).fill("ArrowDown"))).toBe("load_order");
  expect([await at("d"), await at("d")]).toEqual(["dumps", "dumps"]); // there is none further right
  expect([await at("a"), await at("a")]).toEqual(["load_order", "load_order"]);
  expect([await at("ArrowRight"), await at("ArrowLeft")]).toEqual(["dumps", "load_order"]);
});

test("frames of the application's own stand out", async () => {
  const page = await visit(WHOLE);
  await frame(page, "fetch_lines").waitFor({ state: "attached" });
  const own = await page.locator("g.frame.own").allTextContents();
  const all = await page.locator("g.frame").allTextContents();
  const names = (texts: string[]) => texts.map((text) => text.trim().split(/\s/)[0]!);
  expect(names(own)).toContain("fetch_lines");
  expect(names(all)).toContain("Connection.fetch");
  expect(names(own)).not.toContain("Connection.fetch");
});

test("between two states a line is drawn, in bars and between frames", async () => {
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await visit(WHOLE, { colorScheme });
    await frame(page, "fetch_lines").waitFor({ state: "attached" });
    const [line, stroke, edge] = await page.evaluate(() => {
      const probe = document.body.appendChild(Object.assign(document.createElement("i"), { className: "swatch" }));
      const bar = document.querySelector(".split i + i")!;
      return [getComputedStyle(bar, "::before").backgroundColor, getComputedStyle(document.querySelector("g.frame:not(.selected) rect")!).stroke, getComputedStyle(probe).borderLeftColor];
    });
    expect([line, stroke]).toEqual([edge, edge]);
    expect(edge).toBe(colorScheme === "light" ? "rgb(46, 54, 63)" : "rgb(188, 196, 204)");
  }
});

test("recursion is folded with r, which the address holds", async () => {
  const page = await visit(WHOLE);
  await frame(page, "fetch_lines").waitFor({ state: "attached" });
  await Promise.all([page.waitForRequest(/api\/stacks\?.*recursion=0/), page.keyboard.press("r")]);
  await page.getByRole("button", { name: "fold recursion", pressed: true }).waitFor();
  await page.keyboard.press("r");
  await page.getByRole("button", { name: "fold recursion", pressed: false }).waitFor();
  expect(new URL(page.url()).searchParams.has("recursion")).toBe(false);
});

test("what is a sum over tasks is called that", async () => {
  const page = await visit("/profile");
  await page.getByText("of all tasks and threads together").waitFor();
  expect(await page.getByLabel("Weight").locator("option").allInnerTexts()).toEqual(["time of all tasks and threads", "CPU time"]);
  await page.goto(WHOLE);
  await page.getByText("155 samples").last().waitFor();
  expect(await page.getByLabel("Weight").locator("option").allInnerTexts()).toEqual(["elapsed time", "task time", "CPU time"]);
  expect(await page.getByText("of all tasks and threads together").count()).toBe(0);
});

test("the sandwich has callers above and callees below", async () => {
  const page = await visit(WHOLE);
  await frame(page, "fetch_lines").click();
  const title = await page.locator(".frame-bar").getByRole("button", { name: "Sandwich" }).getAttribute("title");
  await page.keyboard.press(/\((.)\)$/.exec(title!)![1]!); // the key that the button names
  const callers = page.getByRole("group", { name: /^Callers of fetch_lines/ });
  await callers.waitFor();
  await callers.getByText("load_order").first().waitFor({ state: "attached" });
  await page.getByRole("group", { name: /^Callees of fetch_lines/ }).getByText("Connection.fetch").first().waitFor({ state: "attached" });
  await page.getByRole("heading", { name: "Traces with it by task time" }).waitFor();
});

test("what is exported is what is selected", async () => {
  const page = await visit(`${WHOLE}&state=waiting`);
  await page.getByText("Export", { exact: true }).click();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "collapsed stacks" }).click()]);
  expect(await readFile((await download.path())!, "utf8")).toBe(`/api/export format=collapsed&trace=${id(1)}&scope=trace&state=waiting`);
});

test("where one exports it is said when a file holds only the newest", async () => {
  const page = await visit("/profile");
  await page.getByText("Export", { exact: true }).click();
  await page.getByText("Too much for one file: it holds the newest 1 000 traces and 20 000 samples.").waitFor();
  await page.goto(WHOLE);
  await Promise.all([page.waitForResponse(/api\/export\/extent/), page.getByText("Export", { exact: true }).click()]);
  await page.getByRole("link", { name: "collapsed stacks" }).waitFor();
  expect(await page.getByText("Too much for one file").count()).toBe(0);
});

test("the selection is copied as Markdown", async () => {
  const page = await visit(`/trace/${id(1)}?scope=children`, { permissions: ["clipboard-read", "clipboard-write"] });
  await page.getByRole("button", { name: "Copy as Markdown" }).click();
  await page.getByText("Markdown copied").waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toContain("/api/markdown trace=");
});

test("a span without samples says why, and offers a wider scope", async () => {
  const page = await visit(`/trace/${id(2)}?span=${(52).toString(16).padStart(16, "0")}`);
  await page.getByText("38 of 412 runs of this operation have stacks").waitFor();
  expect((await page.locator("main").innerText()).match(/412 runs/g)).toHaveLength(1);
  await page.getByRole("button", { name: "Show with children" }).click();
  expect(new URL(page.url()).searchParams.get("scope")).toBe("children");
});

test("that there are few samples is said once, whichever view is chosen", async () => {
  const page = await visit(`/trace/${id(1)}?span=${(2).toString(16).padStart(16, "0")}`);
  for (const view of ["Graph", "Table"]) {
    await page.getByRole("button", { name: view, exact: true }).click();
    await (view === "Graph" ? page.getByRole("group", { name: /^Stacks of/ }) : page.getByRole("columnheader").first()).waitFor();
    await page.getByText("Only 4 looks at this span").waitFor();
    expect((await page.locator("main").innerText()).match(/Few samples|Only 4 looks|412 runs/g)).toEqual(["Few samples", "Only 4 looks", "412 runs"]);
  }
});

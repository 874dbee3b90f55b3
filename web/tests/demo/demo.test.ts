// The demo's shop, profiled, in the real viewer: PYTHON names an interpreter with otel_asyncprof[demo,viewer].
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser, Locator, Page } from "playwright-core";
import { launch, open, type Opened } from "../chromium";

const PYTHON = process.env["PYTHON"] ?? "python3";
const SHOP = new URL("../../../otel_asyncprof/demo/app/shop.py", import.meta.url).pathname;

let shop: ChildProcess;
let base: string;
let browser: Browser;
let opened: Opened;
let page: Page;

beforeAll(async () => {
  shop = spawn(PYTHON, [new URL("shop.py", import.meta.url).pathname], { stdio: ["pipe", "pipe", "inherit"] });
  base = await new Promise<string>((resolve, reject) => {
    shop.stdout!.once("data", (text: Buffer) => resolve(text.toString().trim()));
    shop.once("exit", (code) => reject(new Error(`${PYTHON} ended with ${code}`)));
    shop.once("error", reject);
  });
  browser = await launch();
  opened = await open(browser, base);
  page = opened.page;
});
afterAll(async () => {
  await browser?.close();
  shop?.stdin?.end();
});

/** Line numbers of the awaits in a function of the shop, read from its source. */
function awaits(name: string): number[] {
  const lines = readFileSync(SHOP, "utf8").split("\n");
  const first = lines.findIndex((line) => line.startsWith(`async def ${name}(`));
  const length = lines.slice(first + 1).findIndex((line) => /^\S/.test(line));
  return lines.slice(first, first + 1 + length).flatMap((line, i) => (/\bawait\b/.test(line) ? [first + i + 1] : []));
}

/** "running_total app/shop.py:62 exact" is right when that line of that function awaits. Runs under 100 ms have no exact caller. */
function expectRight(caller: string, how: string[] = ["exact"]): void {
  const [, name, line, known] = /^(\w+) app\/shop\.py:(\d+) (exact|sampled)$/.exec(caller) ?? [];
  expect({ caller, line: Number(line), known }).toEqual({ caller, line: expect.toBeOneOf(awaits(name ?? "")), known: expect.toBeOneOf(how) });
}

test("the slow query of the slowest request and its caller's line are one click away", async () => {
  await page.goto("/");
  await page.locator(".trace-list [role=row]").first().click();
  const first = page.getByRole("region", { name: "Why it took so long" }).getByRole("listitem").first();
  await first.waitFor();
  expect(await first.locator(".statement").innerText()).toMatch(/^(WITH RECURSIVE|SELECT)/);
  expectRight(await first.locator(".caller").innerText());
  await page.locator("g.frame", { hasText: "app/shop.py" }).first().waitFor({ state: "attached" });
});

test("the same by keyboard alone: to the slowest request, its slow query, and all who call that", async () => {
  await page.goto("/");
  await page.locator(".trace-list [role=row]").first().waitFor();
  for (const key of ["j", "Enter"]) await page.keyboard.press(key);
  const findings = page.getByRole("region", { name: "Why it took so long" });
  await findings.waitFor();
  await follow(findings.getByRole("link").first());
  const pane = page.getByRole("region", { name: /^Span / });
  await pane.locator(".called-by .caller").waitFor();
  expectRight(await pane.locator(".called-by .caller").innerText());
  await follow(pane.getByRole("link", { name: "all callers of this query" }));
  await page.getByRole("region", { name: "Callers" }).locator("tbody .caller").first().waitFor();
});

/** Goes to a link as one does without a mouse: it has to be among what Tab reaches, and shown as chosen. */
async function follow(link: Locator): Promise<void> {
  const isFocused = () => link.evaluate((element) => element === document.activeElement && element.matches(":focus-visible"));
  for (let step = 0; step < 100 && !(await isFocused()); step++) await page.keyboard.press("Tab");
  expect(await isFocused()).toBe(true);
  await page.keyboard.press("Enter");
}

test("all callers of the slowest query are one click away, each on a line that awaits it", async () => {
  await page.goto("/");
  await page.getByRole("region", { name: "Slow queries" }).getByRole("link").nth(1).click();
  const callers = page.getByRole("region", { name: "Callers" }).locator("tbody .caller");
  await callers.first().waitFor();
  const [most, ...others] = await callers.allInnerTexts();
  expectRight(most!);
  for (const caller of others) expectRight(caller, ["exact", "sampled"]);
});

test("the split of every span on the page adds up to its duration", async () => {
  const list = (await (await fetch(`${base}/api/traces?limit=20`)).json()) as { traces: { trace_id: string }[] };
  for (const { trace_id } of list.traces) {
    const trace = (await (await fetch(`${base}/api/traces/${trace_id}`)).json()) as { spans: { duration_us: number; split: Record<string, number>; own: Record<string, number> }[] };
    const sums = trace.spans.map(({ split, own }) => [split, own].map((parts) => Object.values(parts).reduce((a, b) => a + b)));
    expect(sums).toEqual(trace.spans.map(({ duration_us }) => [duration_us, duration_us]));
  }
});

test("speedscope opens the stacks of the slowest request, from this server alone", async () => {
  await page.goto("/");
  await page.locator(".trace-list [role=row]").first().click();
  await page.getByText("Export", { exact: true }).click();
  const address = await page.getByRole("link", { name: "Open in speedscope" }).getAttribute("href");
  const other = await open(browser, base);
  await other.page.goto(address!);
  await other.page.getByText("Left Heavy").waitFor();
  await other.page.waitForFunction(() => document.title !== "speedscope");
  expect(other.outside).toEqual([]);
});

test("the page keeps its policy with the real server, and asks nobody else", () => {
  expect({ problems: opened.problems, outside: opened.outside }).toEqual({ problems: [], outside: [] });
});

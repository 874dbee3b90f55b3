// axe finds nothing to mend on any page, in both colour schemes; it sees contrast, names, roles and their order.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { id } from "../../mock/world";
import { visit } from "./setup";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PAGES: [string, string][] = [
  ["/traces", "10 000 traces match"],
  [`/trace/${id(1)}?scope=trace`, "155 samples, 1.55 s"],
  [`/trace/${id(1)}?scope=trace&view=table&tasks=1`, "Connection.fetch"],
  ["/queries", "SELECT * FROM lines"],
  ["/query/7", "155 samples, 1.55 s"],
  ["/operations?op=shop/GET%20/orders/%7Bid%7D", "155 samples, 1.55 s"],
  ["/profile", "155 samples, 1.55 s"],
  [`/trace/${id(1)}?scope=trace&view=sandwich&fn=fetch_lines&file=/srv/shop/orders/service.py`, "Callees"],
  ["/compare", "Choose an operation above"],
  ["/nowhere", "There is no page at /nowhere"],
  [`/compare?a=trace:${id(1)}&b=trace:${id(2)}`, "Functions that differ most"],
];

async function violations(page: Page, where: string): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    const results = (await page.evaluate(() => (window as unknown as { axe: { run: () => Promise<unknown> } }).axe.run())) as AxeResults;
    for (const one of results.violations) found.push(`${where} ${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  }
  return found;
}

test("axe finds nothing", async () => {
  const page = await visit("/");
  await page.context().addInitScript(AXE);
  const found: string[] = [];
  for (const [address, text] of PAGES) {
    await page.goto(address);
    await page.getByText(text).first().waitFor();
    found.push(...(await violations(page, address)));
  }
  await page.goto("/profile");
  await page.getByText("Export", { exact: true }).click();
  await page.getByText("Too much for one file").waitFor();
  found.push(...(await violations(page, "what can be exported")));
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  found.push(...(await violations(page, "the sheet of keys")));
  expect(found).toEqual([]);
}, 240_000);

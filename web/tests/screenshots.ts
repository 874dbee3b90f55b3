// Pictures of every page, to be looked at: npm run screenshots, with VIEWER=http://127.0.0.1:8418 for real data.
import { mkdirSync } from "node:fs";
import { test } from "vitest";
import { launch, open } from "./chromium";
import { serve } from "../mock/server";

const FOLDER = new URL("../shots/", import.meta.url).pathname;

test("every page", async () => {
  mkdirSync(FOLDER, { recursive: true });
  const server = process.env["VIEWER"] ? null : await serve();
  const base = server?.url ?? process.env["VIEWER"]!;
  const browser = await launch();
  const slowest = (await (await fetch(`${base}/api/traces?limit=1`)).json()) as { traces: { trace_id: string; operation: string; service: string }[] };
  const trace = slowest.traces[0]!;
  const queries = (await (await fetch(`${base}/api/queries?limit=1`)).json()) as { queries: { query_id: number }[] };
  const operation = encodeURIComponent(`${trace.service}/${trace.operation}`);
  const pages: Record<string, string> = {
    traces: "/traces",
    trace: `/trace/${trace.trace_id}`,
    "trace-whole": `/trace/${trace.trace_id}?scope=trace`,
    "trace-find": `/trace/${trace.trace_id}?scope=trace&find=execute&color=package`,
    "trace-table": `/trace/${trace.trace_id}?scope=trace&view=table`,
    "trace-tasks": `/trace/${trace.trace_id}?scope=trace&tasks=1`,
    queries: "/queries",
    query: `/query/${queries.queries[0]?.query_id}`,
    operations: `/operations?op=${operation}`,
    profile: "/profile",
    compare: `/compare?a=${encodeURIComponent(`op:${trace.service}/${trace.operation}@fast`)}&b=${encodeURIComponent(`op:${trace.service}/${trace.operation}@slow`)}`,
  };
  for (const colorScheme of (process.env["SCHEME"]?.split(",") ?? ["light", "dark"]) as ("light" | "dark")[]) {
    for (const [name, address] of Object.entries(pages)) {
      if (process.env["ONLY"] && !name.startsWith(process.env["ONLY"])) continue;
      const { page, problems } = await open(browser, base, { colorScheme });
      await page.goto(address);
      await page.waitForFunction(() => document.querySelector("main *") && !/Loading [^.]*…/.test(document.body.innerText));
      await page.waitForTimeout(300); // the graph is drawn a moment after its data have come
      await page.screenshot({ path: `${FOLDER}${name}-${colorScheme}.png`, fullPage: true });
      if (problems.length > 0) console.log(name, problems);
      await page.close();
    }
  }
  await browser.close();
  server?.close();
});

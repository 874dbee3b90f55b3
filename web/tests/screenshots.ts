// Pictures of every page, to be looked at: npm run screenshots, with VIEWER=http://127.0.0.1:8418 for real data.
// With DOCS=1 those of docs/viewer.md: smaller, as WebP, into docs/images.
import { mkdirSync, writeFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { expect, test } from "vitest";
import { launch, open } from "./chromium";
import { serve } from "../mock/server";

const DOCS = Boolean(process.env["DOCS"]);
const FOLDER = new URL(DOCS ? "../../docs/images/" : "../shots/", import.meta.url).pathname;
const DOCS_VIEW = { width: 1050, height: 700 };
const DOCS_TRACE_VIEW = { width: 1050, height: 1090 }; // so that the stacks are in it, without those of libraries
const DOCS_PAGES: Record<string, ("light" | "dark")[]> = { traces: ["light"], trace: ["light", "dark"], "trace-tasks": ["light"], queries: ["light"], query: ["light"], operations: ["light"], profile: ["light"], compare: ["light"] };
const MOST_BYTES = 130_000;

/** The picture as WebP; the browser that took it knows how. */
async function webp(browser: Browser, png: Buffer): Promise<Buffer> {
  const page = await browser.newPage();
  const address = await page.evaluate(async (content) => {
    const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${content}`)).blob());
    const canvas = Object.assign(document.createElement("canvas"), { width: bitmap.width, height: bitmap.height });
    canvas.getContext("2d")!.drawImage(bitmap, 0, 0);
    return canvas.toDataURL("image/webp", 0.6);
  }, png.toString("base64"));
  await page.close();
  return Buffer.from(address.slice(address.indexOf(",") + 1), "base64");
}

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
    trace: `/trace/${trace.trace_id}${DOCS ? "?library=0" : ""}`,
    "trace-whole": `/trace/${trace.trace_id}?scope=trace`,
    "trace-find": `/trace/${trace.trace_id}?scope=trace&find=execute&color=package`,
    "trace-table": `/trace/${trace.trace_id}?scope=trace&view=table`,
    "trace-tasks": `/trace/${trace.trace_id}?scope=trace&tasks=1${DOCS ? "&library=0" : ""}`,
    queries: "/queries",
    query: `/query/${queries.queries[0]?.query_id}`,
    operations: `/operations?op=${operation}`,
    profile: "/profile",
    compare: `/compare?a=${encodeURIComponent(`op:${trace.service}/${trace.operation}@fast`)}&b=${encodeURIComponent(`op:${trace.service}/${trace.operation}@slow`)}`,
  };
  for (const colorScheme of (process.env["SCHEME"]?.split(",") ?? ["light", "dark"]) as ("light" | "dark")[]) {
    for (const [name, address] of Object.entries(pages)) {
      if (process.env["ONLY"] && !name.startsWith(process.env["ONLY"])) continue;
      if (DOCS && !DOCS_PAGES[name]?.includes(colorScheme)) continue;
      const { page, problems } = await open(browser, base, { colorScheme, ...(DOCS ? { viewport: name.startsWith("trace-") || name === "trace" ? DOCS_TRACE_VIEW : DOCS_VIEW } : {}) });
      await page.goto(address);
      await page.waitForFunction(() => document.querySelector("main *") && !/Loading [^.]*…/.test(document.body.innerText));
      await page.waitForTimeout(300); // the graph is drawn a moment after its data have come
      if (DOCS) {
        const picture = await webp(browser, await page.screenshot());
        expect(picture.length).toBeLessThan(MOST_BYTES);
        writeFileSync(`${FOLDER}viewer-${name}${colorScheme === "dark" ? "-dark" : ""}.webp`, picture);
      } else {
        await page.screenshot({ path: `${FOLDER}${name}-${colorScheme}.png`, fullPage: true });
      }
      if (problems.length > 0) console.log(name, problems);
      await page.close();
    }
  }
  await browser.close();
  server?.close();
});

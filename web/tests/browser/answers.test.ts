// The two questions: why was this request slow, and who called this slow query?
import { expect, test } from "vitest";
import { id } from "../../mock/world";
import { visit } from "./setup";

test("the slow query and the line that calls it are one click away", async () => {
  const page = await visit("/");
  await page.getByRole("row", { name: /GET \/orders\/\{id\}/ }).click();
  const why = page.getByRole("region", { name: "Why it took so long" });
  const first = why.getByRole("listitem").first();
  await first.waitFor();
  expect(await first.innerText()).toMatch(/^55 % 1\.02 s\s*17 × SELECT \* FROM lines WHERE order_id = \? called by fetch_lines orders\/service\.py:88 exact/);
  expect(await page.getByRole("region", { name: "Span SELECT" }).innerText()).toContain("called by fetch_lines orders/service.py:88 exact");
});

test("exact and sampled callers of a query are told apart, two clicks from the first page", async () => {
  const page = await visit("/traces");
  await page.getByRole("region", { name: "Slow queries" }).getByText("SELECT * FROM lines").click();
  const rows = page.getByRole("region", { name: "Callers" }).locator("tbody tr");
  await rows.first().waitFor();
  expect(await rows.locator(".caller").allInnerTexts()).toEqual(["fetch_lines orders/service.py:88 exact", "checkout shop/checkout.py:30 sampled"]);
});

test("who held the loop leads to the guilty span", async () => {
  const page = await visit(`/trace/${id(1)}`);
  await page.getByRole("region", { name: "Why it took so long" }).getByRole("link", { name: "pdf.render" }).click();
  await page.getByRole("heading", { name: "POST /checkout" }).waitFor();
  expect(new URL(page.url()).pathname).toBe(`/trace/${id(2)}`);
  expect(await page.getByRole("row", { name: /pdf\.render/ }).getAttribute("aria-selected")).toBe("true");
});

test("the parts of a span's time add up to its duration", async () => {
  const page = await visit(`/trace/${id(1)}?span=${"1".padStart(16, "0")}`);
  const legend = page.locator(".span-pane .legend");
  await legend.waitFor();
  const texts = await legend.locator(".part").allInnerTexts();
  const ms = texts.map((text) => Number(/([\d.]+) (ms|s)$/.exec(text)![1]) * (text.endsWith(" ms") ? 1 : 1000));
  expect(texts.length).toBe(6);
  expect(ms.reduce((a, b) => a + b)).toBeCloseTo(1840, 0);
});

test("a task names the task that awaits it and where, and a drawn stretch of time limits the stacks", async () => {
  const page = await visit(`/trace/${id(1)}?tasks=1`);
  const child = page.getByRole("row", { name: /Task-80/ });
  await child.waitFor();
  expect(await child.innerText()).toContain("awaited by Task-71 at orders/service.py:61");
  const box = (await child.locator("canvas").boundingBox())!;
  const [asked] = await Promise.all([
    page.waitForRequest((request) => request.url().includes("/api/stacks") && request.url().includes("from_us")),
    (async () => {
      await page.mouse.move(box.x + box.width * 0.25, box.y + 10);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * 0.5, box.y + 10, { steps: 3 });
      await page.mouse.up();
    })(),
  ]);
  const query = new URL(asked.url()).searchParams;
  const near = [0.25, 0.5].map((share) => share * 1_840_000);
  expect(Math.abs(Number(query.get("from_us")) - near[0]!)).toBeLessThan(20_000);
  expect(Math.abs(Number(query.get("to_us")) - near[1]!)).toBeLessThan(20_000);
});

test("two sides are compared by state, function and attribute", async () => {
  const page = await visit("/compare?a=op:shop/GET%20/orders/%7Bid%7D@fast&b=op:shop/GET%20/orders/%7Bid%7D@slow");
  const sums = page.getByRole("region", { name: "Sums" });
  await sums.waitFor();
  expect(await sums.getByRole("row", { name: /^total/ }).innerText()).toMatch(/460 ms\s+1\.84 s\s+\+1\.38 s/);
  await page.waitForFunction(() => document.querySelector<HTMLSelectElement>(".long-names")?.value === "shop/GET /orders/{id}");
  await page.getByRole("link", { name: "⇄ Swap" }).click();
  await page.getByRole("row", { name: /^total/ }).getByText("+1.38 s").waitFor();
  expect(new URL(page.url()).searchParams.get("a")).toContain("@slow");
});

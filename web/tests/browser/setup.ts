// One browser and one server of hand-made data for a file of tests; every test has a page of its own.
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import type { Browser, Page } from "playwright-core";
import { serve } from "../../mock/server";
import { launch, open, type Opened } from "../chromium";

let browser: Browser;
let server: Awaited<ReturnType<typeof serve>>;
let opened: Opened[] = [];

beforeAll(async () => {
  [browser, server] = await Promise.all([launch(), serve()]);
});
afterAll(async () => {
  await browser.close();
  server.close();
});
/** Whatever a test did: no error, nothing that the page's policy refuses, no request to anywhere else. */
afterEach(async () => {
  const seen = opened.map(({ problems, outside }) => ({ problems, outside }));
  await Promise.all(opened.map(({ page }) => page.context().close()));
  opened = [];
  expect(seen).toEqual(seen.map(() => ({ problems: [], outside: [] })));
});

export async function visit(address: string, options: Parameters<typeof open>[2] = {}): Promise<Page> {
  const one = await open(browser, server.url, options);
  opened.push(one);
  await one.page.goto(address);
  return one.page;
}

// What holds for all pages: names are text, lists are long, keys work, both colour schemes.
import { expect, test } from "vitest";
import { ATTACK, id } from "../../mock/world";
import { visit } from "./setup";

// Where the name stands last on each page, so that all of it is there.
const HOSTILE: [address: string, last: string][] = [
  ["/traces?q=onerror", ".trace-list"],
  [`/trace/${id(3)}`, ".graph .frame div"],
  [`/trace/${id(3)}?view=table`, ".function-grid.row"],
  [`/trace/${id(3)}?view=sandwich&fn=${encodeURIComponent(ATTACK)}&file=${encodeURIComponent("/srv/shop/<script>window.hacked=1</script>.py")}`, ".sandwich .graph .frame div"],
  ["/queries", "tbody"],
  ["/query/9", "h1"],
  ["/profile", "select"],
  [`/compare?a=trace:${id(1)}&b=trace:${id(3)}`, "section[aria-label=Attributes]"],
];

test("a name that is markup is shown as text on every page", async () => {
  const page = await visit("/");
  for (const [address, last] of HOSTILE) {
    await page.goto(address);
    await page.waitForFunction(([name, at]) => [...document.querySelectorAll(at!)].some((one) => one.textContent!.includes(name!)), [ATTACK, last] as const);
    const found = await page.evaluate(() => ({
      elements: document.querySelectorAll("main img, main script, main iframe").length,
      hacked: "hacked" in window,
    }));
    expect({ address, ...found }).toEqual({ address, elements: 0, hacked: false });
  }
});

test("of ten thousand traces and five thousand spans only those in view are in the document", async () => {
  const page = await visit("/traces");
  await page.getByText("10 000 traces match").waitFor();
  expect(await page.locator(".trace-list [role=row]").count()).toBeLessThan(60);
  await page.goto(`/trace/${id(4)}`);
  const list = page.getByRole("treegrid");
  await list.waitFor();
  expect([await list.getAttribute("aria-rowcount"), (await page.locator(".waterfall [role=row]").count()) < 60]).toEqual(["5000", true]);
  await list.evaluate((element) => element.scrollTo(0, element.scrollHeight));
  await page.getByRole("row", { name: /step 4999/ }).waitFor();
});

test("filters narrow the list and stay in the address", async () => {
  const page = await visit("/traces");
  await page.getByText("10 000 traces match").waitFor();
  await page.getByLabel("At least").fill("1.5 s");
  await page.getByText("1 trace matches").waitFor();
  expect(new URL(page.url()).searchParams.get("min")).toBe("1.5 s");
  await page.getByLabel("At least").fill("nonsense");
  expect(await page.getByLabel("At least").getAttribute("aria-invalid")).toBe("true");
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.getByText("10 000 traces match").waitFor();
});

test("from the first page to a query's caller without a mouse", async () => {
  const page = await visit("/traces");
  await page.getByText("10 000 traces match").waitFor();
  await page.keyboard.press("j");
  await page.locator(".trace-list [aria-selected=true]").waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Span SELECT" }).waitFor();
  await page.keyboard.press("k");
  await page.getByRole("region", { name: "Span load_order" }).waitFor();
  await page.keyboard.press("h");
  await page.waitForFunction(() => document.querySelectorAll(".waterfall [role=row]").length === 3);
  await page.keyboard.press("Escape");
  await page.getByText("10 000 traces match").waitFor();
});

test("the sheet of keys opens with ? and closes with Escape; g and a letter change the page", async () => {
  const page = await visit("/traces");
  await page.getByText("10 000 traces match").waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "hidden" });
  await page.keyboard.press("g");
  await page.keyboard.press("q");
  await page.getByRole("heading", { name: "Queries", level: 1 }).waitFor();
});

test("Escape closes what is open before it leaves the page, and keys do nothing behind the sheet", async () => {
  const page = await visit(`/trace/${id(1)}`);
  await page.getByRole("region", { name: "Span SELECT" }).waitFor();
  await page.keyboard.press("?");
  const sheet = page.getByRole("dialog", { name: "Keys" });
  await sheet.waitFor();
  await page.keyboard.press("m");
  await page.keyboard.press("Escape");
  await sheet.waitFor({ state: "hidden" });
  expect(await page.locator(".top .chip").count()).toBe(0);
  const menu = page.getByRole("link", { name: "collapsed stacks" });
  await page.keyboard.press("e");
  await menu.waitFor();
  await page.keyboard.press("Escape");
  await menu.waitFor({ state: "hidden" });
  expect(new URL(page.url()).pathname).toBe(`/trace/${id(1)}`);
});

test("a span is compared with runs that are stored: of its query, or of its operation when it is a root", async () => {
  const page = await visit(`/trace/${id(1)}`);
  const links = async (span: string) => {
    const pane = page.getByRole("region", { name: `Span ${span}` });
    await pane.waitFor();
    return pane.locator(".actions a.button").evaluateAll((all) => all.map((one) => new URL((one as HTMLAnchorElement).href)).map((url) => `${url.pathname} ${url.searchParams.get("a") ?? url.searchParams.get("op") ?? ""}`.trim()));
  };
  expect(await links("SELECT")).toEqual(["/compare query:7", "/query/7"]);
  await page.keyboard.press("k");
  expect(await links("load_order")).toEqual([]);
  await page.goto(`/trace/${id(1)}?span=${"1".padStart(16, "0")}`);
  expect(await links("GET /orders")).toEqual(["/compare op:shop/GET /orders/{id}@fast", "/operations shop/GET /orders/{id}"]);
});

test("no time stands twice below the points of a few seconds", async () => {
  const page = await visit("/traces?min=500ms");
  await page.addInitScript(() => {
    const drawn = ((window as unknown as { drawn: string[] }).drawn = [] as string[]);
    const { fillText, scale } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.scale = function (x, y) {
      drawn.length = 0; // drawn anew
      scale.call(this, x, y);
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
      drawn.push(text);
      fillText.call(this, text, x, y);
    };
  });
  await page.reload();
  await page.getByText("3 traces match").waitFor();
  const handle = await page.waitForFunction(() => {
    const times = (window as unknown as { drawn: string[] }).drawn.filter((text) => /\d:\d\d:\d\d/.test(text));
    return times.length > 0 && times;
  });
  const times = (await handle.jsonValue()) as string[];
  expect(times.length).toBeGreaterThan(2);
  expect(new Set(times).size).toBe(times.length);
});

test("on a narrow screen nothing stands outside of the page", async () => {
  const page = await visit("/traces", { viewport: { width: 640, height: 900 } });
  for (const [address, text] of [["/traces", "10 000 traces match"], [`/trace/${id(1)}`, "155 samples"], ["/queries", "SELECT * FROM lines"], ["/profile", "155 samples"]] as const) {
    await page.goto(address);
    await page.getByText(text).first().waitFor();
    expect({ address, outside: await page.evaluate(() => document.documentElement.scrollWidth - innerWidth) }).toEqual({ address, outside: 0 });
  }
});

test("what is marked with m is compared by M", async () => {
  const page = await visit(`/trace/${id(1)}`);
  await page.getByRole("region", { name: "Span SELECT" }).waitFor();
  await page.keyboard.press("m");
  await page.locator(".top .chip").waitFor();
  await page.keyboard.press("k");
  await page.getByRole("region", { name: "Span load_order" }).waitFor();
  await page.keyboard.press("M");
  await page.getByRole("region", { name: "Sums" }).waitFor();
  const query = new URL(page.url()).searchParams;
  expect([query.get("a"), query.get("b")]).toEqual([`span:${id(1)}:${"a".padStart(16, "0")}`, `span:${id(1)}:${"3".padStart(16, "0")}`]);
});

test("a key that follows at once acts on what it sees", async () => {
  const page = await visit(`/trace/${id(1)}`);
  await page.getByRole("region", { name: "Span SELECT" }).waitFor();
  await page.keyboard.press("m");
  await page.locator(".top .chip").waitFor();
  await page.evaluate(async () => {
    const press = (key: string) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    const appeared = new Promise<void>((resolve) => {
      new MutationObserver(() => document.querySelector("[aria-label='Span load_order']") && resolve()).observe(document.body, { subtree: true, childList: true });
    });
    press("k");
    await appeared; // not yet painted
    press("M");
  });
  await page.getByRole("region", { name: "Sums" }).waitFor();
  expect(new URL(page.url()).searchParams.get("b")).toBe(`span:${id(1)}:${"3".padStart(16, "0")}`);
});

test("a stretch of time is chosen over the tasks with w s a d", async () => {
  const page = await visit(`/trace/${id(1)}?tasks=1`);
  await page.getByText("Task-71").first().waitFor();
  const stretch = async (key: string) => {
    await page.keyboard.press(key);
    const query = new URL(page.url()).searchParams;
    return [query.get("t0"), query.get("t1")].map(Number);
  };
  expect(await stretch("w")).toEqual([460_000, 1_380_000]);
  await page.getByText("from 460 ms to 1.38 s").waitFor();
  expect(await stretch("w")).toEqual([690_000, 1_150_000]);
  expect(await stretch("d")).toEqual([805_000, 1_265_000]);
  expect(await stretch("a")).toEqual([690_000, 1_150_000]);
  expect(await stretch("s")).toEqual([460_000, 1_380_000]);
  expect(await stretch("0")).toEqual([0, 0]);
});

test("a lane says what it is of, and leads there", async () => {
  const page = await visit(`/trace/${id(1)}?tasks=1`);
  const lane = page.getByRole("row", { name: /^GET \/orders.* never seen itself/ });
  await lane.getByRole("button").click();
  await page.getByRole("region", { name: "Span GET /orders" }).waitFor();
  expect(new URL(page.url()).searchParams.has("task")).toBe(false);
  await page.getByRole("button", { name: "Task-80" }).click();
  await page.waitForFunction(() => location.search.includes("task=Task-80"));
});

test("dark and light follow the system, and the choice is kept", async () => {
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const page = await visit("/queries", { colorScheme: "dark" });
  await page.getByRole("heading", { name: "Queries" }).waitFor();
  expect(await background()).toBe("rgb(20, 24, 29)");
  await page.getByRole("button", { name: /^Colours: auto/ }).click();
  await page.getByRole("button", { name: /^Colours: dark/ }).click();
  expect(await background()).toBe("rgb(255, 255, 255)");
  await page.reload();
  await page.getByRole("button", { name: /^Colours: light/ }).waitFor();
  expect(await background()).toBe("rgb(255, 255, 255)");
});

test("what is not there is said in a sentence", async () => {
  const page = await visit("/nowhere");
  await page.getByText("There is no page at /nowhere").waitFor();
});

// The browser of the tests: the one that is installed, without a window.
import { type Browser, chromium, type Page } from "playwright-core";

const EXECUTABLE = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const WAIT_MS = 20_000; // a busy machine is no reason to fail

export async function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: EXECUTABLE, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
}

export interface Opened {
  page: Page;
  problems: string[]; // uncaught errors, errors in the console, refused by the page's policy
  outside: string[]; // requests to anywhere else
}

export async function open(browser: Browser, base: string, options: Parameters<Browser["newPage"]>[0] = {}): Promise<Opened> {
  const page = await browser.newPage({ baseURL: base, viewport: { width: 1400, height: 1000 }, reducedMotion: "reduce", ...options });
  page.setDefaultTimeout(WAIT_MS);
  const problems: string[] = [];
  const outside: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(base).origin) outside.push(request.url());
  });
  return { page, problems, outside };
}

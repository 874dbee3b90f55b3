import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { serveMock } from "./mock/server.ts";
import { licences, speedscope } from "./vendored.ts";

// `npm run dev`: the page with the data in mock/, or with those of a viewer: API=http://127.0.0.1:8418 npm run dev.
const mock: Plugin = {
  name: "mock",
  configureServer(server) {
    if (!process.env["API"]) server.middlewares.use(serveMock);
  },
};

const outDir = "../otel_asyncprof/viewer/static";

export default defineConfig({
  plugins: [mock, licences, speedscope],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  server: process.env["API"] ? { proxy: { "/api": process.env["API"] } } : {},
  build: {
    outDir,
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false, // its polyfill is an inline script in some versions; one file needs none
    assetsInlineLimit: 0, // data: addresses are not allowed by the page's Content-Security-Policy
    rolldownOptions: {
      // Fixed names: the files are committed, and the server revalidates them.
      output: { entryFileNames: "page.js", assetFileNames: "[name][extname]", codeSplitting: false },
    },
  },
  test: {
    projects: [
      { extends: true, test: { name: "unit", include: ["tests/unit/*.test.ts"] } },
      {
        extends: true,
        test: { name: "browser", include: ["tests/browser/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
      },
      { extends: true, test: { name: "demo", include: ["tests/demo/*.test.ts"], testTimeout: 180_000, hookTimeout: 180_000 } },
      { extends: true, test: { name: "screenshots", include: ["tests/screenshots.ts"], testTimeout: 600_000 } },
    ],
  },
});

// What others have written and the built page brings along: their licences, and speedscope as a page of its own.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

const SPEEDSCOPE = new URL("node_modules/speedscope", import.meta.url).pathname;
const PACKAGE = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//;

function licenceOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<string, string>;
  const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  return `${name} ${version} (${license})\n\n${file ? readFileSync(join(folder, file), "utf8").trim() : ""}`;
}

export const licences: Plugin = {
  name: "licences",
  generateBundle(_, bundle) {
    const folders = new Set<string>();
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== "chunk") continue;
      for (const id of chunk.moduleIds) {
        const folder = PACKAGE.exec(id.replace(/^\0/, ""))?.[1];
        if (folder && existsSync(join(folder, "package.json"))) folders.add(folder);
      }
    }
    folders.add(SPEEDSCOPE);
    const texts = [...folders].map(licenceOf).sort();
    this.emitFile({ type: "asset", fileName: "THIRD_PARTY.txt", source: `${texts.join(`\n\n${"-".repeat(78)}\n\n`)}\n` });
  },
};

// Without its sample profile, and without the reader of Java's recordings, which would be most of its size.
const LEFT_OUT = /^(perf-vertx|jfrview|file-format-schema|favicon-.*\.js|release\.txt)/;

export const speedscope: Plugin = {
  name: "speedscope",
  generateBundle() {
    const folder = join(SPEEDSCOPE, "dist/release");
    for (const name of readdirSync(folder).filter((one) => !LEFT_OUT.test(one))) {
      this.emitFile({ type: "asset", fileName: `speedscope/${name}`, source: readFileSync(join(folder, name)) });
    }
  },
};

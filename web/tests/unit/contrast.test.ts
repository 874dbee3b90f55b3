// Text can be read on everything that it stands on, in both colour schemes: what axe does not see in graphs.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const CSS = readFileSync(new URL("../../src/styles/base.css", import.meta.url), "utf8");
const LEAST = 4.5; // WCAG 2, AA
const LEAST_SHAPE = 3; // of what is no text
const SCHEMES = ["light", "dark"] as const;
const colours = new Map([...CSS.matchAll(/--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g)].map(([, name, light, dark]) => [name!, { light: light!, dark: dark! }]));

function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light! + 0.05) / (dark! + 0.05);
}

/** Pairs that are hard to read. */
function unreadable(texts: string[], grounds: string[], least = LEAST): string[] {
  return texts.flatMap((text) =>
    grounds.flatMap((ground) => SCHEMES.filter((scheme) => contrast(colours.get(text)![scheme], colours.get(ground)![scheme]) < least).map((scheme) => `${text} on ${ground}, ${scheme}`)),
  );
}

test("the names of frames can be read on the colours of states, packages, kinds and differences", () => {
  const fills = [...colours.keys()].filter((name) => /^(running|waiting|ready|blocked|root|same|(kind|hue|more|less)-\w+)$/.test(name));
  expect(fills.length).toBe(4 + 2 + 4 + 12 + 10);
  expect(unreadable(["text"], fills)).toEqual([]);
});

test("coloured text can be read on the page, on raised parts and on what is chosen", () => {
  expect(unreadable(["text", "dim", "accent", "bad", "hint", "good"], ["back", "raised", "chosen"])).toEqual([]);
});

test("the line between two states is seen on both, and on what was not sampled", () => {
  expect(unreadable(["edge"], ["running", "waiting", "ready", "blocked", "children", "back", "root"], LEAST_SHAPE)).toEqual([]);
});

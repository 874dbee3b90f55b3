// Dark, light, or what the system says.
import { signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
const KEY = "asyncprof.theme";
const NEXT: Record<Theme, Theme> = { auto: "dark", dark: "light", light: "auto" };

const stored = localStorage.getItem(KEY);
export const theme = signal<Theme>(stored === "light" || stored === "dark" ? stored : "auto");

/** Grows whenever colours may have changed: canvases draw themselves anew. */
export const colours = signal(0);

export function applyTheme(): void {
  if (theme.value === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme.value;
  colours.value++;
}

export function nextTheme(): void {
  theme.value = NEXT[theme.value];
  localStorage.setItem(KEY, theme.value);
  applyTheme();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => colours.value++);

/** A colour of the style sheet as a canvas needs it. */
export function colour(name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

// The page's state is its address: what is shown can be copied, reloaded and gone back from.
import { computed, signal } from "@preact/signals";

const address = signal(location.pathname + location.search);
export const path = computed(() => address.value.split("?")[0]!);
export const params = computed(() => new URLSearchParams(address.value.split("?")[1] ?? ""));

export type Changes = Record<string, string | number | null | undefined>;

export function param(name: string): string {
  return params.value.get(name) ?? "";
}

/** The address with some parameters changed; empty values leave it. */
export function changed(changes: Changes, of = address.value): string {
  const [where, text] = of.split("?") as [string, string | undefined];
  const result = new URLSearchParams(text ?? "");
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") result.delete(name);
    else result.set(name, String(value));
  }
  const query = result.toString();
  return query ? `${where}?${query}` : where;
}

export function go(to: string, replace = false): void {
  if (to === address.value) return;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  address.value = to;
}

/** Choices make steps to go back; what is typed does not. */
export function set(changes: Changes, replace = false): void {
  go(changed(changes), replace);
}

export function href(where: string, changes: Changes = {}): string {
  return changed(changes, where);
}

addEventListener("popstate", () => (address.value = location.pathname + location.search));

document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element).closest?.("a[href]");
  if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute("download")) return;
  if (link.origin !== location.origin || link.pathname.startsWith("/api/")) return;
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  const elsewhere = link.pathname !== location.pathname;
  go(link.pathname + link.search);
  if (elsewhere) scrollTo(0, 0);
});

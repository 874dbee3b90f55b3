// Keys: what has appeared last is asked first. Nothing is taken from someone who types, except Escape.
import { useLayoutEffect, useRef } from "preact/hooks";

export type Keys = Record<string, (event: KeyboardEvent) => void>;

const layers: { current: Keys }[] = [];
let prefix = "";
let prefixUntil = 0;
const PREFIX_MS = 1500; // between `g` and the letter that follows

export function useKeys(keys: Keys): void {
  const layer = useRef(keys);
  layer.current = keys;
  // At once, not after the next frame: until then keys would act on what has just gone.
  useLayoutEffect(() => {
    layers.push(layer);
    return () => void layers.splice(layers.indexOf(layer), 1);
  }, []);
}

function types(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Escape is the open menu's before it is the page's, which it leaves. */
function closeMenu(): boolean {
  const menu = document.querySelector<HTMLDetailsElement>("details.exports[open]");
  if (!menu) return false;
  menu.open = false;
  menu.querySelector("summary")!.focus();
  return true;
}

export function listenToKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]")) return; // a modal one: Escape closes it, nothing behind it is meant
    if (types(event.target)) {
      if (event.key === "Escape") (event.target as HTMLElement).blur();
      return;
    }
    if (event.key === "Escape" && closeMenu()) return event.preventDefault();
    const now = performance.now();
    const key = now < prefixUntil ? `${prefix} ${event.key}` : event.key;
    prefixUntil = 0;
    // Enter and Space on a control are the control's own.
    if ((key === "Enter" || key === " ") && (event.target as Element).closest?.("a,button,summary")) return;
    for (const layer of [...layers].reverse()) {
      const handler = layer.current[key];
      if (!handler) continue;
      event.preventDefault();
      handler(event);
      return;
    }
    if (event.key === "g") {
      prefix = "g";
      prefixUntil = now + PREFIX_MS;
    }
  });
}

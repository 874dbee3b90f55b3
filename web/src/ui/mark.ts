// What was marked with `m`, to be compared with something else; kept while the browser's tab lives.
import { signal } from "@preact/signals";

export interface Mark {
  selector: string;
  label: string;
}

const KEY = "asyncprof.mark";

function stored(): Mark | null {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Mark | null;
  } catch {
    return null;
  }
}

export const mark = signal<Mark | null>(stored());

export function setMark(value: Mark | null): void {
  mark.value = value;
  if (value) sessionStorage.setItem(KEY, JSON.stringify(value));
  else sessionStorage.removeItem(KEY);
}

// Answers of the server: asked for once per address, the old one shown until the new one is there.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError, Change, Status } from "../api";

export interface Answer<T> {
  data: T | null;
  error: string | null;
  loading: boolean; // also while `data` is of the address before
}

export async function ask<T>(url: string, signal?: AbortSignal): Promise<T> {
  let response: Response;
  try {
    response = await fetch(url, signal ? { signal } : {});
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new Error("The server does not answer. Is otel-asyncprof serve still running?");
  }
  if (!response.ok) {
    const body = (await response.json().catch(() => null)) as ApiError | null;
    throw new Error(body?.error ?? `The server answered ${response.status}.`);
  }
  return (await response.json()) as T;
}

/** `again` asks for the same address anew when it changes. */
export function useAnswer<T>(url: string | null, again: unknown = 0): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ data: null, error: null, loading: url !== null });
  const asked = useRef<string | null>(null);
  useEffect(() => {
    if (url === null) {
      asked.current = null;
      setAnswer({ data: null, error: null, loading: false });
      return;
    }
    const stop = new AbortController();
    const path = url.split("?")[0];
    const other = asked.current?.split("?")[0] !== path; // another thing: what is shown does not belong to it
    asked.current = url;
    setAnswer((before) => ({ data: other ? null : before.data, error: null, loading: true }));
    ask<T>(url, stop.signal).then(
      (data) => setAnswer({ data, error: null, loading: false }),
      (cause: Error) => {
        if (!stop.signal.aborted) setAnswer({ data: null, error: cause.message, loading: false });
      },
    );
    return () => stop.abort();
  }, [url, again]);
  return answer;
}

export function api(path: string, values: object = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return `/api/${path}${text ? `?${text}` : ""}`;
}

// ---- What has changed on the server

export const status = signal<Status | null>(null);
export const change = signal<Change | null>(null);
export const paused = signal(false);
export const connected = signal(true);

export function listen(): void {
  const refresh = () => void ask<Status>("/api/status").then((answer) => (status.value = answer), () => {});
  refresh();
  const events = new EventSource("/api/events");
  events.addEventListener("open", () => {
    connected.value = true;
    refresh();
  });
  events.addEventListener("error", () => (connected.value = false));
  events.addEventListener("change", (event) => {
    connected.value = true;
    const news = JSON.parse(event.data as string) as Change;
    if (!status.value || news.revision - status.value.revision > 50) refresh();
    if (!paused.value) change.value = news;
  });
}

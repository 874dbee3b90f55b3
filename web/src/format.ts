// Numbers and places as people read them.

const STEPS: [number, string][] = [
  [1_000_000, "s"],
  [1_000, "ms"],
  [1, "µs"],
];

const MINUTE = 60_000_000;

/** Three digits at most: 1.84 s, 38 ms, 0 ms; from three minutes on 35 min, 1 h 5 min. */
export function duration(us: number): string {
  if (us === 0) return "0 ms";
  const size = Math.abs(us);
  if (size >= 3 * MINUTE) {
    const minutes = Math.round(size / MINUTE);
    const rest = minutes % 60;
    const text = minutes < 60 ? `${minutes} min` : `${count(Math.floor(minutes / 60))} h${rest > 0 ? ` ${rest} min` : ""}`;
    return us < 0 ? `-${text}` : text;
  }
  const [unit, name] = STEPS.find(([step]) => size >= step * 0.9995) ?? [1, "µs"];
  const value = us / unit;
  const digits = size >= 100 * unit ? 0 : size >= 10 * unit ? 1 : 2;
  return `${name === "µs" ? Math.round(value) : Number(value.toFixed(digits))} ${name}`;
}

export function signed(us: number): string {
  return us > 0 ? `+${duration(us)}` : duration(us);
}

/** What is not nothing is never shown as nothing. */
export function percent(part: number, whole: number): string {
  if (whole <= 0 || part === 0) return "0 %";
  const share = (100 * part) / whole;
  if (share < 0.1) return "< 0.1 %";
  return share < 9.95 ? `${Number(share.toFixed(1))} %` : `${Math.round(share)} %`;
}

export function count(n: number): string {
  return n.toString().replace(/\B(?=(\d{3})+$)/g, " ");
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function timeOfDay(us: number): string {
  return new Date(us / 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

const DAY_S = 86_400;
const TIME_STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, DAY_S];

/** Marks of an axis of time at round times of the local clock: `most` or one more, no two with the same text. */
export function timeMarks(from: number, until: number, most: number): { us: number; text: string }[] {
  const seconds = (until - from) / 1e6;
  const step_s = TIME_STEPS_S.find((step) => seconds / step <= most) ?? Math.ceil(seconds / most / DAY_S) * DAY_S;
  const behindUtc = (us: number) => new Date(us / 1000).getTimezoneOffset() * 6e7; // another one in summer
  const text = seconds < DAY_S ? timeOfDay : step_s < DAY_S ? dayAndTime : day;
  const marks: { us: number; text: string }[] = [];
  const step = step_s * 1e6;
  for (let local = Math.ceil((from - behindUtc(from)) / step) * step; ; local += step) {
    const us = local + behindUtc(local + behindUtc(from));
    if (us > until) return marks;
    marks.push({ us, text: text(us) });
  }
}

function dayAndTime(us: number): string {
  return new Date(us / 1000).toLocaleString([], { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}

function day(us: number): string {
  return new Date(us / 1000).toLocaleDateString([], { dateStyle: "medium" });
}

export function dateAndTime(us: number): string {
  return new Date(us / 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "medium" });
}

/** The last two parts of a path: enough to know the file. */
export function shortFile(file: string): string {
  return file.split("/").slice(-2).join("/");
}

export function place(frame: { file: string; line: number }): string {
  if (!frame.file) return "";
  return frame.line > 0 ? `${shortFile(frame.file)}:${frame.line}` : shortFile(frame.file);
}

/** What was typed into a field for a duration: 100, 100ms, 1.5 s. Microseconds; null when it is none. */
export function parseDuration(text: string): number | null {
  const match = /^\s*(\d+(?:[.,]\d+)?)\s*(us|µs|ms|s|m|min|h|d)?\s*$/i.exec(text);
  if (!match) return null;
  const units: Record<string, number> = { us: 1, µs: 1, ms: 1e3, s: 1e6, m: 6e7, min: 6e7, h: 3.6e9, d: 8.64e10 };
  return Math.round(Number(match[1]!.replace(",", ".")) * units[(match[2] ?? "ms").toLowerCase()]!);
}

/** Round marks for an axis from 0 to `end`, about `wanted` of them. */
export function ticks(end: number, wanted: number): number[] {
  if (end <= 0) return [0];
  const rough = end / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough)!;
  return Array.from({ length: Math.floor(end / step) + 1 }, (_, i) => Math.round(i * step));
}

// The filters of the list of traces; all of them live in the address.
import type { Operation, TraceFilter } from "../api";
import { duration, parseDuration } from "../format";
import { status } from "../ui/answers";
import { Choice, Field } from "../ui/field";
import { param, set } from "../ui/url";

export const SINCE: [string, string][] = [
  ["", "any time"],
  ["5m", "5 minutes"],
  ["15m", "15 minutes"],
  ["1h", "1 hour"],
  ["24h", "24 hours"],
];

export const SORTS: [NonNullable<TraceFilter["sort"]>, string][] = [
  ["-duration", "slowest"],
  ["-start", "newest"],
  ["-queries", "most queries"],
  ["-spans", "most spans"],
  ["duration", "fastest"],
  ["start", "oldest"],
];

const ROUND_US = 10_000_000; // so that the address asked for does not change with every glance

/** A begin from a span of time such as 15m, against the server's clock. */
export function sinceUs(text: string, now: number): number | undefined {
  const us = parseDuration(text);
  return us === null ? undefined : Math.floor((now - us) / ROUND_US) * ROUND_US;
}

export function traceFilter(now: number): TraceFilter {
  const us = (name: string) => parseDuration(param(name)) ?? undefined;
  const from = Number(param("from")) || undefined;
  const filter: TraceFilter = { sort: (param("sort") || "-duration") as TraceFilter["sort"] & string };
  const values = {
    service: param("service"),
    operation: param("op"),
    text: param("q"),
    min_us: us("min"),
    max_us: us("max"),
    since_us: from ?? sinceUs(param("since"), now),
    until_us: Number(param("to")) || undefined,
    error: param("err") ? "1" : undefined,
    attribute: param("attr"),
    function: param("fn"),
    file: param("file"),
    query: Number(param("query")) || undefined,
  };
  for (const [name, value] of Object.entries(values)) if (value) Object.assign(filter, { [name]: value });
  return filter;
}

const NAMES = ["service", "op", "q", "min", "max", "since", "from", "to", "err", "attr", "fn", "file", "query"];

export function Filters({ operations }: { operations: Operation[] }) {
  const used = NAMES.filter((name) => param(name));
  const services = status.value?.services ?? [...new Set(operations.map((one) => one.service))];
  const names = [...new Set(operations.map((one) => one.name))];
  if (param("op") && !names.includes(param("op"))) names.unshift(param("op"));
  return (
    <form class="filters" role="search" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <Choice name="service" label="Service" options={[["", "any"], ...services.map((one): [string, string] => [one, one])]} />
      <Choice name="op" label="Operation" options={[["", "any"], ...names.map((one): [string, string] => [one, one])]} />
      <Field name="min" label="At least" hint="100 ms" isRight={(text) => parseDuration(text) !== null} size={7} />
      <Field name="max" label="At most" hint="2 s" isRight={(text) => parseDuration(text) !== null} size={7} />
      <Choice name="since" label="Since" options={SINCE} />
      <Field name="q" label="Text" hint="span or statement" search size={18} />
      <Field name="attr" label="Attribute" hint="key:value" isRight={(text) => text.includes(":")} size={12} />
      <label class="check">
        <input type="checkbox" checked={param("err") !== ""} onChange={(event) => set({ err: event.currentTarget.checked ? "1" : "" })} /> errors only
      </label>
      <Choice name="sort" label="Sort" options={SORTS.map(([value, label], i) => [i === 0 ? "" : value, label])} />
      {param("fn") && <span class="chip" title={param("file")}>with a sample in {param("fn")} <button type="button" aria-label="Any function" onClick={() => set({ fn: "", file: "" })}>×</button></span>}
      {param("query") && <span class="chip">one query <button type="button" aria-label="Any query" onClick={() => set({ query: "" })}>×</button></span>}
      {used.length > 0 && (
        <button type="button" onClick={() => set(Object.fromEntries(NAMES.map((name) => [name, ""])))}>
          Clear filters
        </button>
      )}
    </form>
  );
}

export function durationParam(us: number): string {
  return duration(us).replace(" ", "");
}

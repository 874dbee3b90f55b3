// Two things beside each other, per run: two spans, traces or queries, or the slow and the fast runs of an operation.
import { useState } from "preact/hooks";
import type { Comparison, Holder, Operation, Side } from "../api";
import { duration, percent, place, plural, signed } from "../format";
import { api, useAnswer } from "../ui/answers";
import { mark } from "../ui/mark";
import { PART_NAMES, SplitBar, STATES } from "../ui/split";
import { Note, Wait } from "../ui/state";
import { changed, param, set } from "../ui/url";
import { DiffGraph } from "./graph";
import { differing } from "./shades";

export function ComparePage() {
  const [a, b] = [param("a"), param("b")];
  const answer = useAnswer<Comparison>(a && b ? api("compare", { a, b }) : null);
  return (
    <div class="page">
      <h1>Compare</h1>
      <Choose a={a} b={b} />
      {a && b ? (
        <Wait answer={answer} what="the comparison">
          {(data) => <Content data={data} />}
        </Wait>
      ) : (
        <Note>
          Choose an operation above, or mark a trace, a span or a query with <kbd>m</kbd> and compare another one with it by <kbd>M</kbd>.
          {mark.value && !a && <> Marked is {mark.value.label}. <button onClick={() => set({ a: mark.value!.selector })}>Take it as A</button></>}
        </Note>
      )}
    </div>
  );
}

function Choose({ a, b }: { a: string; b: string }) {
  const operations = useAnswer<Operation[]>(api("operations"));
  const [typedA, setA] = useState(a);
  const [typedB, setB] = useState(b);
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
        set({ a: typedA, b: typedB, zoom: "" });
      }}
    >
      <label>
        Slow against fast runs of{" "}
        <select
          class="long-names"
          value={slowAgainstFast(a, b)}
          onChange={(event) => {
            const name = event.currentTarget.value;
            if (!name) return;
            setA(`op:${name}@fast`);
            setB(`op:${name}@slow`);
            set({ a: `op:${name}@fast`, b: `op:${name}@slow`, zoom: "" });
          }}
        >
          <option value="">choose an operation</option>
          {(operations.data ?? []).filter((one) => one.runs > 1).map((one) => (
            <option key={`${one.service}/${one.name}`} value={`${one.service}/${one.name}`}>
              {one.name} ({plural(one.runs, "run")})
            </option>
          ))}
        </select>
      </label>
      <details class="selectors">
        <summary>by selector</summary>
        <label>A <input value={typedA} onInput={(event) => setA(event.currentTarget.value)} size={36} spellcheck={false} placeholder="op:SERVICE/NAME@fast" /></label>
        <label>B <input value={typedB} onInput={(event) => setB(event.currentTarget.value)} size={36} spellcheck={false} placeholder="span:TRACE:SPAN" /></label>
        <button type="submit">Compare</button>
      </details>
      {a && b && <a class="button" href={changed({ a: b, b: a })}>⇄ Swap</a>}
    </form>
  );
}

/** The operation whose fast and slow runs these are; empty when they are something else. */
function slowAgainstFast(a: string, b: string): string {
  const name = /^op:(.*)@fast$/s.exec(a)?.[1] ?? "";
  return b === `op:${name}@slow` ? name : "";
}

function Content({ data }: { data: Comparison }) {
  const { a, b } = data;
  return (
    <>
      <Summary a={a} b={b} />
      {(a.samples === 0 || b.samples === 0) && <Note>{a.samples === 0 ? "A" : "B"} has no samples, so only times and spans can be compared.</Note>}
      <DiffGraph data={data} />
      <div class="columns">
        <FunctionsTable data={data} />
        <div>
          <Attributes data={data} />
          <HoldersOf name="A" holders={data.holders.a} />
          <HoldersOf name="B" holders={data.holders.b} />
        </div>
      </div>
    </>
  );
}

function Summary({ a, b }: { a: Side; b: Side }) {
  const rows: [string, number, number, string?][] = [
    ["total", a.mean_us, b.mean_us],
    ...STATES.map((state): [string, number, number, string] => [PART_NAMES[state], a.split[`${state}_us`], b.split[`${state}_us`], `fill-${state}`]),
    ["not sampled", a.split.not_sampled_us, b.split.not_sampled_us, "fill-not_sampled"],
  ];
  const most = Math.max(...rows.slice(1).map(([, x, y]) => Math.abs(y - x)), 1);
  const sides: [string, Side][] = [["A", a], ["B", b]];
  return (
    <section aria-label="Sums">
      <table class="compare-sides">
        <tbody>
          {sides.map(([name, side]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="clip-wide"><a href={linkOf(side.selector)}>{side.label}</a></td>
              <td class="dim">{plural(side.runs, "run")}, {plural(side.samples, "sample")}{side.queries_per_run > 0 && `, ${Number(side.queries_per_run.toFixed(1))} queries per run`}</td>
              <td class="bar-cell"><span class="bar-room" style={{ width: `${(100 * side.mean_us) / Math.max(a.mean_us, b.mean_us, 1)}%` }}><SplitBar split={side.split} /></span></td>
            </tr>
          ))}
        </tbody>
      </table>
      <table>
        <thead>
          <tr><th>per run</th><th class="n">A</th><th class="n">B</th><th class="n">difference</th><td /></tr>
        </thead>
        <tbody>
          {rows.map(([name, x, y, fill], i) => (
            <tr key={name}>
              <th scope="row">{fill && <i class={`swatch ${fill}`} />} {name}</th>
              <td class="n">{duration(x)}</td>
              <td class="n">{duration(y)}</td>
              <td class={`n strong ${y > x ? "more" : y < x ? "less" : ""}`}>{signed(y - x)}</td>
              <td class="middle">{i > 0 && <span class={`meter ${y > x ? "more" : "less"}`}><i style={{ width: `${(100 * Math.abs(y - x)) / most}%` }} /></span>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** The page of what a selector names. */
export function linkOf(selector: string): string {
  const [kind, ...rest] = selector.split(":");
  const value = rest.join(":");
  if (kind === "span") return `/trace/${rest[0]}?span=${rest[1]}`;
  if (kind === "trace") return `/trace/${value}`;
  if (kind === "query") return `/query/${value}`;
  const [name, at] = [value.slice(0, value.lastIndexOf("@")), value.slice(value.lastIndexOf("@") + 1)];
  return `/operations?${new URLSearchParams({ op: name, ...(at === "all" ? {} : { at }) })}`;
}

const MOST_ROWS = 25;

function FunctionsTable({ data }: { data: Comparison }) {
  const rows = differing(data).slice(0, MOST_ROWS);
  if (rows.length === 0) return <div />;
  return (
    <section aria-label="Functions">
      <h2>Functions that differ most</h2>
      <table class="wide">
        <thead>
          <tr><th class="n">A</th><th class="n">B</th><th class="n">difference</th><th class="n">itself</th><th>function</th></tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const frame = data.frames[row.frame];
            if (!frame) return null;
            return (
              <tr key={row.frame} class={row.noise ? "faded" : ""} title={row.noise ? "Within what so few samples can tell" : undefined}>
                <td class="n">{duration(row.a_us)}</td>
                <td class="n">{duration(row.b_us)}</td>
                <td class={`n strong ${row.noise ? "" : row.b_us > row.a_us ? "more" : "less"}`}>{signed(row.b_us - row.a_us)}</td>
                <td class="n">{signed(row.b_self_us - row.a_self_us)}</td>
                <td><code class={frame[3] === "own" ? "strong" : ""}>{frame[0]}</code> <span class="dim">{place({ file: frame[1], line: row.line })}</span></td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

const FEWEST_RUNS = 3; // of fewer, every attribute is "always there"

function Attributes({ data }: { data: Comparison }) {
  if (data.attributes.length === 0 || data.b.runs < FEWEST_RUNS) return null;
  return (
    <section aria-label="Attributes">
      <h2>More often in B</h2>
      <table class="wide">
        <thead>
          <tr><th>attribute</th><th class="n">A</th><th class="n">B</th></tr>
        </thead>
        <tbody>
          {data.attributes.map((one) => (
            <tr key={`${one.key} ${one.value}`}>
              <td><code>{one.key}</code> = {one.value}</td>
              <td class="n">{percent(one.a_share * 1e6, 1e6)}</td>
              <td class="n strong">{percent(one.b_share * 1e6, 1e6)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function HoldersOf({ name, holders }: { name: string; holders: Holder[] }) {
  if (holders.length === 0) return null;
  return (
    <section aria-label={`Who held the loop in ${name}`}>
      <h2>Who held the loop in {name}</h2>
      <ul class="plain">
        {holders.slice(0, 5).map((holder, i) => (
          <li key={i}>
            <b>{duration(holder.us)}</b> {holder.span_name || holder.task || holder.thread}{" "}
            {holder.caller && <span class="dim">{holder.caller.function} {place(holder.caller)}</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}

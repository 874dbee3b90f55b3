// Operations: what a kind of request usually costs, and what its slow runs do differently.
import type { Operation, StackFilter } from "../api";
import { count, duration, percent } from "../format";
import { StackView } from "../stacks/view";
import { selection } from "../stacks/filter";
import { api, useAnswer } from "../ui/answers";
import { Exports } from "../ui/exports";
import { Choice } from "../ui/field";
import { Note, Wait } from "../ui/state";
import { changed, href, param } from "../ui/url";

export function OperationsPage() {
  const answer = useAnswer<Operation[]>(api("operations", { service: param("service") }));
  const chosen = param("op");
  return (
    <div class="page">
      <h1>Operations</h1>
      <Wait answer={answer} what="operations">
        {(list) => (list.length === 0 ? <Note>No operation has arrived yet. <a href="/traces">How to send some</a></Note> : <Table list={list} chosen={chosen} />)}
      </Wait>
      {chosen && <Chosen name={chosen} />}
    </div>
  );
}

function Table({ list, chosen }: { list: Operation[]; chosen: string }) {
  const most = list.reduce((largest, one) => Math.max(largest, one.total_us), 1);
  return (
    <div class="room">
      <table class="wide">
        <thead>
          <tr>
            <th class="n">total</th>
            <th class="n">runs</th>
            <th class="n">errors</th>
            <th class="n">p50</th>
            <th class="n">p95</th>
            <th class="n">longest</th>
            <th>operation</th>
            <th>more</th>
          </tr>
        </thead>
        <tbody>
          {list.map((one) => {
            const key = `${one.service}/${one.name}`;
            return (
              <tr key={key} aria-selected={key === chosen}>
                <td class="n">{duration(one.total_us)}<span class="meter"><i style={{ width: `${(100 * one.total_us) / most}%` }} /></span></td>
                <td class="n">{count(one.runs)}</td>
                <td class="n">{one.errors > 0 ? <span class="bad">{percent(one.errors, one.runs)}</span> : <span class="dim">0</span>}</td>
                <td class="n">{duration(one.p50_us)}</td>
                <td class="n">{duration(one.p95_us)}</td>
                <td class="n">{duration(one.max_us)}</td>
                <td><a href={changed({ op: key, zoom: "" })}>{one.name}</a> <span class="dim">{one.service}</span></td>
                <td class="small">
                  <a href={href("/traces", { op: one.name, service: one.service })}>traces</a>{" · "}
                  <a href={href("/compare", { a: `op:${key}@fast`, b: `op:${key}@slow` })}>slow against fast</a>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Chosen({ name }: { name: string }) {
  const at = (param("at") || "all") as NonNullable<StackFilter["at"]>;
  const base: StackFilter = { operation: name, at };
  const title = name.slice(name.indexOf("/") + 1);
  return (
    <section aria-label={`Stacks of ${title}`}>
      <h2>{title}</h2>
      <div class="actions">
        <Choice name="at" label="Runs" options={[["", "all"], ["slow", "slow: p95 and more"], ["fast", "fast: p50 and less"]]} />
        <a class="button" href={href("/compare", { a: `op:${name}@fast`, b: `op:${name}@slow` })}>Slow against fast</a>
        <Exports filter={selection(base)} />
      </div>
      <StackView base={base} root={`all runs of ${title}`} />
    </section>
  );
}

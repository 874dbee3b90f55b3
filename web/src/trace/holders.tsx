// Who held the event loop while this trace's tasks were ready.
import type { Holder, Holders } from "../api";
import { duration, percent, place } from "../format";
import { EditorLink } from "../stacks/source";

export function HoldersView({ holders }: { holders: Holders }) {
  return (
    <section id="holders" aria-label="Who held the event loop">
      <h2>
        Who held the event loop <span class="dim small">while something here was ready, for {duration(holders.ready_us)}</span>
      </h2>
      <table>
        <thead>
          <tr>
            <th class="n">share</th>
            <th class="n">time</th>
            <th>work</th>
            <th>at</th>
            <th>whose</th>
          </tr>
        </thead>
        <tbody>
          {holders.holders.map((holder, i) => (
            <HolderRow key={i} holder={holder} />
          ))}
          {holders.unexplained_us > 0 && (
            <tr class="dim">
              <td class="n">{percent(holders.unexplained_us, holders.ready_us)}</td>
              <td class="n">{duration(holders.unexplained_us)}</td>
              <td colSpan={3}>nobody was seen to hold it: too short for the sampling rate, or another process had the CPU</td>
            </tr>
          )}
        </tbody>
      </table>
    </section>
  );
}

function HolderRow({ holder }: { holder: Holder }) {
  const frame = holder.caller ?? holder.leaf;
  const work = holder.span_name || holder.task || holder.thread;
  return (
    <tr>
      <td class="n strong">{percent(Math.round(holder.share * 1e6), 1e6)}</td>
      <td class="n">{duration(holder.us)}</td>
      <td>
        <i class={`swatch fill-${holder.state}`} title={holder.state} />{" "}
        {holder.trace_id && holder.span_id ? <a href={`/trace/${holder.trace_id}?span=${holder.span_id}`}>{work}</a> : work}{" "}
        <span class="dim">{holder.state === "blocked" ? "in a blocking call" : "running"}</span>
      </td>
      <td>{frame ? <><code>{frame.function}</code> <EditorLink frame={frame}>{place(frame)}</EditorLink></> : <span class="dim">not known</span>}</td>
      <td class="dim">{holder.same_trace ? "this trace" : holder.operation || "no span"}</td>
    </tr>
  );
}

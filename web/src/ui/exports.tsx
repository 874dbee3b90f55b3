// What is selected, as a file in another program's format.
import type { StackFilter } from "../api";
import { api } from "./answers";

const FORMATS: [string, string][] = [
  ["html", "HTML page of its own"],
  ["speedscope", "speedscope"],
  ["pprof", "pprof"],
  ["collapsed", "collapsed stacks"],
  ["chrome", "Chrome trace, Perfetto"],
  ["gecko", "Firefox Profiler"],
  ["otlp", "OTLP, protobuf"],
  ["otlp-json", "OTLP, JSON"],
];

export function Exports({ filter }: { filter: StackFilter }) {
  return (
    <details class="exports">
      <summary class="button">Export</summary>
      <ul>
        {FORMATS.map(([format, name]) => (
          <li key={format}>
            <a href={api("export", { format, ...filter })} download="">{name}</a>
          </li>
        ))}
      </ul>
    </details>
  );
}

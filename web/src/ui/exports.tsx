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

/** speedscope is served beside this page and takes the profile from its address. */
function speedscopeUrl(filter: StackFilter): string {
  const profile = new URL(api("export", { format: "speedscope", ...filter }), location.href);
  return `/speedscope/index.html#profileURL=${encodeURIComponent(profile.href)}`;
}

export function Exports({ filter }: { filter: StackFilter }) {
  return (
    <details class="exports">
      <summary class="button">Export</summary>
      <ul>
        <li>
          <a href={speedscopeUrl(filter)} target="_blank">Open in speedscope (in this browser)</a>
        </li>
        {FORMATS.map(([format, name]) => (
          <li key={format}>
            <a href={api("export", { format, ...filter })} download="">{name}</a>
          </li>
        ))}
      </ul>
    </details>
  );
}

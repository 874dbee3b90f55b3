// What is selected, as a file in another program's format.
import { useState } from "preact/hooks";
import type { Extent, StackFilter } from "../api";
import { count, plural } from "../format";
import { api, useAnswer } from "./answers";

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

/** Why a file does not hold all of it: said before someone takes it for the whole. */
function Cut({ extent }: { extent: Extent }) {
  const traces = extent.most_traces > 1 ? `${plural(extent.most_traces, "trace")} and ` : "";
  return (
    <li class="cut small">
      Too much for one file: it holds the newest {traces}{count(extent.most_samples)} samples.
    </li>
  );
}

export function Exports({ filter }: { filter: StackFilter }) {
  const [isOpen, setOpen] = useState(false);
  const extent = useAnswer<Extent>(isOpen ? api("export/extent", filter) : null).data;
  return (
    <details class="exports" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="button">Export</summary>
      <ul>
        {extent?.cut && <Cut extent={extent} />}
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

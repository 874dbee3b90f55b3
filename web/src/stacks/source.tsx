// The way from a frame to its source.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Source } from "../api";
import { api, status, useAnswer } from "../ui/answers";
import { editorUrl, type Place } from "./editor";

export function EditorLink({ frame, children }: { frame: Place; children: ComponentChildren }) {
  const url = editorUrl(frame, status.value?.editor);
  const title = `${frame.file}:${frame.line}`;
  if (!url) return <span class="place" title={title}>{children}</span>;
  return (
    <a class="place" href={url} target="_blank" rel="noreferrer" title={`Open ${title} in your editor`}>
      {children}
    </a>
  );
}

/** The lines around a frame, on demand; `weights` is the time per line, as far as it is known. */
export function SourceLines({ frame, weights }: { frame: Place; weights?: Map<number, string> }) {
  const [shown, setShown] = useState(false);
  const answer = useAnswer<Source>(shown ? api("source", { file: frame.file, line: frame.line, context: 6 }) : null);
  if (!shown) return <button onClick={() => setShown(true)}>Source</button>;
  if (answer.error) return <span class="dim">{answer.error}</span>;
  if (!answer.data) return <span class="dim">Loading …</span>;
  const { first, lines } = answer.data;
  return (
    <pre class="source">
      {lines.map((text, i) => (
        <span key={i} class={first + i === frame.line ? "here" : undefined}>
          <span class="number">{first + i}</span>
          <span class="weight">{weights?.get(first + i) ?? ""}</span>
          {text}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}

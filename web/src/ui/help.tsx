// The sheet of keys.
import { useEffect, useRef } from "preact/hooks";
import { signal } from "@preact/signals";

export const helpShown = signal(false);

const KEYS: [string, [string, string][]][] = [
  [
    "Everywhere",
    [
      ["g t", "traces"],
      ["g q", "queries"],
      ["g o", "operations"],
      ["g p", "profiles"],
      ["g c", "compare"],
      ["/", "search"],
      ["y", "copy the link to what is shown"],
      ["p", "pause or resume news"],
      ["?", "this sheet"],
    ],
  ],
  [
    "Lists and waterfall",
    [
      ["j k ↓ ↑", "next and previous row"],
      ["h l ← →", "collapse and expand"],
      ["Enter", "open"],
      ["m", "mark as A"],
      ["M", "compare A with this"],
      ["Esc", "back out"],
    ],
  ],
  [
    "Stacks",
    [
      ["1 2 3 4", "graph, table, sandwich of a frame, tasks"],
      ["[ ]", "scope narrower, wider"],
      ["i", "root on top or below"],
      ["c", "callers: leaf first"],
      ["n N", "next and previous match"],
      ["f", "keep only stacks with this frame"],
      ["x", "hide this frame"],
      ["o", "open the source in your editor"],
      ["e", "export"],
      ["r", "fold recursion"],
    ],
  ],
  [
    "In the graph",
    [
      ["← → ↑ ↓", "neighbouring frames"],
      ["a d", "the same as ← →"],
      ["Enter w +", "zoom in"],
      ["s -", "zoom out by one frame"],
      ["0 Esc", "zoom out"],
    ],
  ],
  [
    "In the tasks",
    [
      ["w +", "a shorter stretch of time"],
      ["s -", "a longer one"],
      ["a d", "earlier, later"],
      ["0", "all of the time"],
    ],
  ],
];

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (helpShown.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [helpShown.value]);
  return (
    <dialog ref={dialog} class="help" aria-label="Keys" onClose={() => (helpShown.value = false)}>
      <form method="dialog">
        <button aria-label="Close">×</button>
      </form>
      <h2>Keys</h2>
      <div class="help-columns">
        {KEYS.map(([title, rows]) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {rows.map(([key, what]) => (
                <div key={key}>
                  <dt>{key.split(" ").map((part) => <kbd key={part}>{part}</kbd>)}</dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </dialog>
  );
}

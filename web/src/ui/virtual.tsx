// A list of which only the rows in view are in the document.
import type { ComponentChildren, RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

const BORDERS = 2;
const AROUND = 8; // rows above and below the view

interface Props {
  count: number;
  rowHeight: number;
  cursor: number; // kept in view when it changes; -1 for none
  label: string;
  role: "grid" | "treegrid";
  highest?: number; // pixels; given: as high as its rows need, up to that
  class?: string;
  children: (index: number, top: number) => ComponentChildren;
}

export function VirtualList({ count, rowHeight, cursor, label, role, highest, class: name = "", children }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [first, last] = useWindow(box, count, rowHeight);
  useLayoutEffect(() => {
    const list = box.current;
    if (!list || cursor < 0) return;
    const top = cursor * rowHeight;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + rowHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + rowHeight - list.clientHeight;
  }, [cursor, rowHeight, count > 0]);
  const rows = [];
  for (let index = first; index < last; index++) rows.push(children(index, index * rowHeight));
  return (
    <div class={`virtual ${name}`} ref={box} role={role} aria-label={label} aria-rowcount={count} tabIndex={0} style={highest ? { height: `${Math.min(highest, count * rowHeight + BORDERS)}px` } : {}}>
      <div class="virtual-space" role="presentation" style={{ height: `${count * rowHeight}px` }}>
        {rows}
      </div>
    </div>
  );
}

function useWindow(box: RefObject<HTMLDivElement | null>, count: number, rowHeight: number): [number, number] {
  const [view, setView] = useState<[number, number]>([0, 60]);
  useLayoutEffect(() => {
    const list = box.current!;
    const measure = () => {
      const first = Math.max(0, Math.floor(list.scrollTop / rowHeight) - AROUND);
      const last = Math.ceil((list.scrollTop + list.clientHeight) / rowHeight) + AROUND;
      setView((before) => (before[0] === first && before[1] === last ? before : [first, last]));
    };
    measure();
    list.addEventListener("scroll", measure, { passive: true });
    const watch = new ResizeObserver(measure);
    watch.observe(list);
    return () => {
      list.removeEventListener("scroll", measure);
      watch.disconnect();
    };
  }, [rowHeight]);
  return [Math.min(view[0], count), Math.min(view[1], count)];
}

/** The element's width, followed as it changes. */
export function useWidth(box: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    setWidth(element.clientWidth);
    const watch = new ResizeObserver(() => setWidth(element.clientWidth));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  return width;
}

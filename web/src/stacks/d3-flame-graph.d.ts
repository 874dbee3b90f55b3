// The part of d3-flame-graph 5 that is used here; it brings no types.
declare module "d3-flame-graph" {
  import type { Selection } from "d3-selection";

  export interface Drawn<T> {
    data: T & { hide?: boolean; fade?: boolean };
    parent: Drawn<T> | null;
    each(visit: (node: Drawn<T>) => void): void;
  }
  export interface Chart<T> {
    (selection: Selection<HTMLElement, T, null, undefined>): void;
    width(pixels: number): Chart<T>;
    height(pixels: number): Chart<T>;
    cellHeight(pixels: number): Chart<T>;
    transitionDuration(ms: number): Chart<T>;
    minFrameSize(pixels: number): Chart<T>;
    inverted(rootOnTop: boolean): Chart<T>;
    sort(order: boolean): Chart<T>;
    label(text: (node: Drawn<T>) => string): Chart<T>;
    color(fill: (node: Drawn<T>) => string): Chart<T>;
    onClick(handler: (node: Drawn<T>) => void): Chart<T>;
    onHover(handler: (node: Drawn<T>) => void): Chart<T>;
    zoomTo(node: Drawn<T>): void;
    resetZoom(): void;
    destroy(): void;
  }
  export default function flamegraph<T>(): Chart<T>;
}

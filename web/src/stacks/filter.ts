// What of the stacks is asked for: the thing itself from the page, the rest from the address.
import type { StackFilter } from "../api";
import { param } from "../ui/url";

export type Scope = NonNullable<StackFilter["scope"]>;
export const SCOPES: [Scope, string, string][] = [
  ["self", "this span", "Only samples linked to this very span"],
  ["children", "with children", "This span and all spans below it"],
  ["trace", "whole trace", "All samples of the trace"],
];

/** Whether times are sums over tasks and threads that went on side by side: then they are no time by the clock. */
export function isSum(base: StackFilter): boolean {
  return !base.trace && !base.operation;
}

export function scope(): Scope {
  const value = param("scope");
  return value === "children" || value === "trace" ? value : "self";
}

/** What is selected, without what is only looked for in it: exports take this. */
export function selection(base: StackFilter): StackFilter {
  const filter: StackFilter = { ...base };
  if (base.span) filter.scope = scope();
  if (param("state")) filter.state = param("state");
  if (param("t0")) filter.from_us = Number(param("t0"));
  if (param("t1")) filter.to_us = Number(param("t1"));
  if (param("task")) filter.task = param("task");
  if (param("weight")) filter.weight = param("weight") as NonNullable<StackFilter["weight"]>;
  if (filter.scope === "trace") delete filter.span;
  return filter;
}

export function stackFilter(base: StackFilter): StackFilter {
  const filter = selection(base);
  if (param("by") === "line") filter.by = "line";
  if (param("invert")) filter.invert = "1";
  if (param("find")) filter.find = param("find");
  if (param("focus")) filter.focus = param("focus");
  if (param("hide")) filter.hide = param("hide");
  if (param("library")) filter.library = "0";
  if (param("recursion")) filter.recursion = "0";
  return filter;
}

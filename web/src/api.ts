// The viewer's JSON API, as web/API.md describes it. Every `_us` is a whole number of microseconds: times of day since
// 1970 (below 2^53), everything else a duration. Ids are lower-case hexadecimal, as in OTLP/JSON. All strings are text,
// whoever sent them: never put one into markup.
export type * from "./api/shared";
export type * from "./api/traces";
export type * from "./api/stacks";
export type * from "./api/queries";

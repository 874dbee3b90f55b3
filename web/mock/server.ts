import type { IncomingMessage, ServerResponse } from "node:http";
export function serveMock(_r: IncomingMessage, _s: ServerResponse, next: () => void): void { next(); }
export async function serve(): Promise<{ url: string; close: () => void }> { throw new Error("not yet"); }

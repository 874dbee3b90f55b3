import type { IncomingMessage, ServerResponse } from "node:http";
export function serveMock(_r: IncomingMessage, _s: ServerResponse, next: () => void): void { next(); }

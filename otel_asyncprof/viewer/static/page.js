"use strict";
const time = (us) => (us >= 1e6 ? `${(us / 1e6).toFixed(2)} s` : us >= 1e3 ? `${(us / 1e3).toFixed(1)} ms` : `${us} µs`);
const get = (path) => fetch(path).then((answer) => answer.json());

function fill(id, rows) {
  const body = document.querySelector(`#${id} tbody`);
  body.replaceChildren(
    ...rows.map((cells) => {
      const row = document.createElement("tr");
      for (const text of cells) row.insertCell().textContent = text;
      return row;
    }),
  );
}

async function show() {
  const [status, list, queries] = await Promise.all([get("/api/status"), get("/api/traces"), get("/api/queries")]);
  document.getElementById("status").textContent =
    `${status.traces} traces, ${status.samples} samples. Send OTLP to ${status.receivers.http} or ${status.receivers.grpc}.`;
  const share = (split, state) => (split ? time(split[`${state}_us`]) : "…");
  const states = ["running", "waiting", "ready", "blocked", "not_sampled"];
  fill("traces", list.traces.map((t) => [time(t.duration_us), t.operation, ...states.map((s) => share(t.split, s)), t.spans, t.queries]));
  const place = ({ caller }) => `${caller.function} (${caller.file}:${caller.line})${caller.exact ? "" : ", from samples"}`;
  fill("queries", queries.queries.map((q) => [time(q.total_us), q.runs, time(q.p95_us), q.statement, q.callers.map(place).join("; ")]));
}

new EventSource("/api/events").addEventListener("change", show);

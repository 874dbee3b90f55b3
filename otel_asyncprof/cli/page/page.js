"use strict";
const ROW = 19, MIN_WIDTH = 1, MAX_ROWS_SHOWN = 200;
const byId = (id) => document.getElementById(id);
const STATES = Object.keys(DATA.split);
const shown = new Set(STATES);
let root = null, top_ = null, boxes = [], query = "";

const COLOURS = { running: "--running", waiting: "--waiting", ready: "--ready", blocked: "--blocked" };
const style = getComputedStyle(document.documentElement);
const colour = (state) => style.getPropertyValue(COLOURS[state] || "--dim").trim() || "#888888";

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

// A colour that lets the page's background through: the opaque one that is seen.
function faded(hex, opacity) {
  const back = rgb(style.getPropertyValue("--back").trim());
  return "#" + rgb(hex).map((part, i) => Math.round(opacity * part + (1 - opacity) * back[i]).toString(16).padStart(2, "0")).join("");
}

// Black or white, whichever stands out more: on any colour that is at least 4.5:1 (WCAG 2, AA).
function textOn(hex) {
  const [red, green, blue] = rgb(hex).map((part) => (part <= 10 ? part / 3294 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return (luminance + 0.05) ** 2 > 1.05 * 0.05 ? "#000000" : "#ffffff";
}

const plural = (n, one) => `${n} ${one}${n === 1 ? "" : "s"}`;

function time(ns) {
  if (ns >= 1e9) return (ns / 1e9).toFixed(2) + " s";
  if (ns >= 1e6) return (ns / 1e6).toFixed(1) + " ms";
  return (ns / 1e3).toFixed(0) + " µs";
}

// Builds an element from text alone: nothing of the recording is ever taken for markup.
function make(tag, content, attributes = {}) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const part of [content].flat()) if (part !== undefined && part !== null) element.append(part);
  return element;
}

function node(frame, parent) {
  return { frame, parent, value: 0, self: 0, byState: {}, children: new Map() };
}

function build() {
  const place = byId("mode").value === "cpu" ? 3 : 2, hides = byId("library").checked;
  root = node(-1, null);
  for (const stack of DATA.stacks) {
    const value = stack[place];
    if (!value || !shown.has(stack[1])) continue;
    let current = root;
    current.value += value;
    for (const frame of stack[0]) {
      if (hides && DATA.frames[frame][3]) continue;
      let child = current.children.get(frame);
      if (!child) current.children.set(frame, (child = node(frame, current)));
      child.value += value;
      child.byState[stack[1]] = (child.byState[stack[1]] || 0) + value;
      current = child;
    }
    current.self += value;
  }
  top_ = root;
}

function matches(frame) {
  const [name, file] = DATA.frames[frame];
  return query !== "" && (name + " " + file).toLowerCase().includes(query);
}

function layout(width) {
  boxes = [];
  const path = [];
  for (let above = top_.parent; above; above = above.parent) path.unshift(above);
  path.forEach((above, depth) => boxes.push({ node: above, x: 0, width, depth, faded: true }));
  const waiting = [[top_, 0, path.length]];
  while (waiting.length) {
    const [current, x, depth] = waiting.pop();
    const size = (current.value / top_.value) * width;
    if (size < MIN_WIDTH || depth > MAX_ROWS_SHOWN) continue;
    boxes.push({ node: current, x, width: size, depth, faded: false });
    let left = x;
    for (const child of [...current.children.values()].sort((a, b) => b.value - a.value)) {
      waiting.push([child, left, depth + 1]);
      left += (child.value / top_.value) * width;
    }
  }
}

function label(current) {
  if (current.frame < 0) return "all " + time(current.value);
  return DATA.frames[current.frame][0];
}

function draw() {
  const canvas = byId("flame"), width = canvas.clientWidth || 1000, scale = window.devicePixelRatio || 1;
  layout(width);
  const depth = boxes.reduce((most, box) => Math.max(most, box.depth), 0) + 1;
  canvas.style.height = depth * ROW + "px";
  canvas.width = width * scale;
  canvas.height = depth * ROW * scale;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  let found = 0;
  for (const box of boxes) {
    const { node: current, x, width: size, depth: row } = box;
    const main = Object.entries(current.byState).sort((a, b) => b[1] - a[1])[0];
    const hit = current.frame >= 0 && matches(current.frame);
    if (hit) found += 1;
    const opacity = box.faded ? 0.45 : current.frame >= 0 && DATA.frames[current.frame][3] ? 0.6 : 1;
    const ground = faded(hit ? "#b04fd0" : main ? colour(main[0]) : "#777777", opacity);
    context.fillStyle = ground;
    context.fillRect(x, row * ROW, Math.max(size - 0.6, 0.6), ROW - 1);
    if (size > 34) {
      context.save();
      context.beginPath();
      context.rect(x + 3, row * ROW, size - 6, ROW);
      context.clip();
      context.fillStyle = textOn(ground);
      context.fillText(label(current), x + 4, row * ROW + ROW / 2);
      context.restore();
    }
  }
  byId("found").textContent = query ? `${plural(found, "frame")} found` : "";
  functions();
}

function at(event) {
  const area = byId("flame").getBoundingClientRect();
  const x = event.clientX - area.left, row = Math.floor((event.clientY - area.top) / ROW);
  return boxes.find((box) => box.depth === row && x >= box.x && x < box.x + box.width);
}

function describe(current) {
  if (current.frame < 0) return `everything: ${time(current.value)}`;
  const [name, file, line] = DATA.frames[current.frame];
  const states = Object.entries(current.byState).sort((a, b) => b[1] - a[1]);
  const split = states.map(([state, value]) => `${state} ${Math.round((100 * value) / current.value)}%`).join(", ");
  const share = ((100 * current.value) / root.value).toFixed(1);
  return `${name} (${file}:${line})  ${time(current.value)}, ${share}%, self ${time(current.self)}; ${split}`;
}

function functions() {
  const totals = new Map(), waiting = [[top_, new Set()]];
  while (waiting.length) {
    const [current, above] = waiting.pop();
    let names = above;
    if (current.frame >= 0) {
      const [name, file] = DATA.frames[current.frame], key = name + "\0" + file;
      const entry = totals.get(key) || { name, file, self: 0, total: 0 };
      entry.self += current.self;
      if (!above.has(key)) { entry.total += current.value; names = new Set(above).add(key); }
      totals.set(key, entry);
    }
    for (const child of current.children.values()) waiting.push([child, names]);
  }
  const rows = [...totals.values()].sort((a, b) => b.self - a.self || b.total - a.total).slice(0, 30);
  byId("functions").replaceChildren(
    make("tr", [make("th", "self", { class: "n" }), make("th", "with what it calls", { class: "n" }), make("th", "function")]),
    ...rows.map((row) => make("tr", [
      make("td", time(row.self), { class: "n" }), make("td", time(row.total), { class: "n" }),
      make("td", [make("code", row.name), " ", make("span", row.file, { class: "dim" })]),
    ])),
  );
}

function bar(split) {
  const total = Object.values(split).reduce((sum, value) => sum + value, 0);
  const parts = Object.entries(split).map(([state, value]) => {
    const part = make("span", "", { title: `${state} ${time(value * 1e6)}` });
    part.style.background = colour(state);
    part.style.width = (100 * value) / total + "%";
    return part;
  });
  return total ? make("div", parts, { class: "bar" }) : make("span", "no samples", { class: "dim" });
}

function writeSplit() {
  const total = Object.values(DATA.split).reduce((sum, value) => sum + value, 0);
  for (const [state, value] of Object.entries(DATA.split)) {
    const share = Math.round((100 * value) / total);
    const button = make("button", `${state} ${share}%`, { type: "button", "aria-pressed": "true", title: `${state} ${time(value)}` });
    button.style.background = colour(state);
    button.style.color = textOn(colour(state));
    button.style.flexGrow = value / total;
    button.style.flexBasis = "0";
    button.addEventListener("click", () => {
      if (!shown.delete(state)) shown.add(state);
      button.setAttribute("aria-pressed", shown.has(state));
      build();
      draw();
    });
    byId("split").append(button);
  }
}

function writeRequests() {
  const head = make("tr", [make("th", "took", { class: "n" }), make("th", "request"), make("th", "time"), make("th", "queries", { class: "n" }), make("th", "trace")]);
  const rows = DATA.requests.map((request) => make("tr", [
    make("td", time(request.duration_ms * 1e6), { class: "n" }),
    make("td", [request.name, request.error ? " (error)" : ""]),
    make("td", bar(request.time_ms)),
    make("td", String(request.queries), { class: "n" }),
    make("td", make("code", request.trace_id)),
  ]));
  byId("requests").replaceChildren(...(rows.length ? [head, ...rows] : [make("tr", make("td", "No spans were recorded."))]));
}

function writeQueries() {
  const items = DATA.queries.map((item) => {
    const summary = make("summary", [
      make("strong", time(item.total_ms * 1e6)), " ", make("code", item.statement), " ",
      make("span", `${plural(item.runs, "run")}, p50 ${time(item.p50_ms * 1e6)}, p95 ${time(item.p95_ms * 1e6)}, slowest ${time(item.slowest_ms * 1e6)}` +
        (item.most_in_one_request > 1 ? `; ${item.most_in_one_request} in one request` : ""), { class: "dim" }),
    ]);
    const callers = item.callers.map((entry) => make("div", ["by ", make("code", entry.caller), ` (${plural(entry.runs, "run")})`]));
    const requests = item.requests.map((entry) => make("div", `for ${entry.name} (${plural(entry.runs, "run")})`));
    const stack = make("ol", item.slowest.stack.map((line) => make("li", line)), { class: "stack" });
    return make("details", [summary, ...callers, ...requests, make("div", ["slowest: trace ", make("code", item.slowest.trace_id)]), stack], { class: "query" });
  });
  byId("queries").replaceChildren(...(items.length ? items : ["No queries were recorded."]));
}

function reset() { top_ = root; draw(); }

byId("title").textContent = DATA.title;
document.title = DATA.title + " – otel-asyncprof";
byId("summary").textContent = `${DATA.seconds}, ${plural(DATA.samples, "sample")}, ${DATA.linked} of them linked to spans; ${plural(DATA.spans, "span")}; CPU ${DATA.cpu}`;
writeSplit();
writeRequests();
writeQueries();
build();
draw();
for (const id of ["mode", "library"]) byId(id).addEventListener("change", () => { build(); draw(); });
byId("find").addEventListener("input", (event) => { query = event.target.value.toLowerCase(); draw(); });
byId("reset").addEventListener("click", reset);
byId("flame").addEventListener("mousemove", (event) => { const box = at(event); if (box) byId("detail").textContent = describe(box.node); });
byId("flame").addEventListener("click", (event) => { const box = at(event); if (box) { top_ = box.node; draw(); } });
window.addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { byId("find").value = query = ""; reset(); }
  if (event.key === "/" && document.activeElement !== byId("find")) { event.preventDefault(); byId("find").focus(); }
});

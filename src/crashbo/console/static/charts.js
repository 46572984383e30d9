// Pictures of the run: progress and the limit. Drawn from the trials; no model is needed.

import { byId, costName, el, label, short, svg } from "/dom.js";
import { own } from "/space.js";

const MARGIN = { left: 58, right: 14, top: 14, bottom: 40 };

// --- axes ----------------------------------------------------------------------------------------

export function niceTicks(low, high, count = 5) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((one) => one * power >= rough) * power;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

function logTicks(low, high) {
  const ticks = [];
  for (let power = Math.ceil(Math.log10(low) - 1e-9); 10 ** power <= high * (1 + 1e-9); power += 1) ticks.push(10 ** power);
  return ticks.length > 1 ? ticks : [low, high];
}

// A frame with axes. `x` and `y` have low, high and log; gives the svg and maps to its pixels.
function frame(place, { x, y, xLabel, yLabel, lane = 0 }) {
  const width = Math.max(place.clientWidth, 240);
  const height = Math.min(Math.max(0.55 * width, 200), 330);
  const scale = (axis) => (axis.log ? Math.log10 : (value) => value);
  const right = width - MARGIN.right;
  const bottom = height - MARGIN.bottom;
  const top = MARGIN.top + lane;
  const place01 = (axis, value) => (scale(axis)(value) - scale(axis)(axis.low)) / (scale(axis)(axis.high) - scale(axis)(axis.low) || 1);
  const px = (value) => MARGIN.left + place01(x, value) * (right - MARGIN.left);
  const py = (value) => bottom - place01(y, value) * (bottom - top);
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  for (const tick of y.log ? logTicks(y.low, y.high) : niceTicks(y.low, y.high, 4)) {
    picture.append(svg("line", { class: "grid", x1: MARGIN.left, x2: right, y1: py(tick), y2: py(tick) }));
    picture.append(svg("text", { class: "tick", x: MARGIN.left - 7, y: py(tick) + 4, "text-anchor": "end", text: short(tick, 4) }));
  }
  for (const tick of niceTicks(x.low, x.high, width < 420 ? 4 : 7).filter(Number.isInteger))
    picture.append(svg("text", { class: "tick", x: px(tick), y: bottom + 17, "text-anchor": "middle", text: short(tick, 4) }));
  picture.append(svg("line", { class: "axis", x1: MARGIN.left, x2: right, y1: bottom, y2: bottom }));
  picture.append(svg("text", { class: "name", x: (MARGIN.left + right) / 2, y: height - 5, "text-anchor": "middle", text: xLabel }));
  picture.append(svg("text", { class: "name", x: 0, y: 0, "text-anchor": "middle", transform: `translate(13 ${(top + bottom) / 2}) rotate(-90)`, text: yLabel }));
  place.replaceChildren(picture);
  return { picture, px, py, width, height, left: MARGIN.left, right, top, bottom };
}

function bounds(values) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  if (low > 0 && high / low > 100) return { low: low / 1.3, high: high * 1.3, log: true };
  const gap = 0.07 * (high - low || Math.abs(high) || 1);
  return { low: low - gap, high: high + gap, log: false };
}

export function cross(x, y, title, size = 5) {
  return svg("path", { class: "mark crash", d: `M${x - size} ${y - size}L${x + size} ${y + size}M${x - size} ${y + size}L${x + size} ${y - size}` }, svg("title", { text: title }));
}

export const dot = (x, y, title, kind = "", size = 4.5) => svg("circle", { class: `mark dot ${kind}`, cx: x, cy: y, r: size }, svg("title", { text: title }));

function steps(points) {
  return points.map(([x, y], index) => (index ? `H${x}V${y}` : `M${x} ${y}`)).join("");
}

export function legend(...items) {
  return el("ul", { class: "legend" }, ...items.filter(Boolean).map(([kind, text]) => el("li", {}, el("span", { class: `key ${kind}`, "aria-hidden": "true" }), text)));
}

function caption(figure, text, ...extra) {
  figure.querySelector("figcaption").replaceChildren(el("p", { text }), ...extra);
}

// --- progress --------------------------------------------------------------------------------------

const told = (rows) => rows.filter((row) => row.status === "finished" || row.status === "crashed");

export function renderConvergence(page) {
  const { info } = page.state;
  const figure = byId("convergence");
  const rows = told(page.rows);
  const costs = rows.filter((row) => row.status === "finished").map((row) => row.objective);
  const crashes = rows.filter((row) => row.status === "crashed").length;
  figure.dataset.trials = rows.length;
  if (!rows.length) return empty(figure, "Nothing to show yet: no trial has a result.");
  if (!costs.length) return empty(figure, `${rows.length} results, all of them crashed: no cost has been seen yet.`);
  const lane = crashes ? 22 : 0;
  const chart = frame(figure.querySelector(".plot"), {
    x: { low: 0, high: rows.length + 1 },
    y: bounds(costs),
    xLabel: "results",
    yLabel: costName(info),
    lane,
  });
  const best = drawRun(chart, info, rows);
  const sum = `${rows.length} results, ${crashes} of them crashed.`;
  const words = best ? `Best so far: ${costName(info)} ${short(best.objective, 6)} in trial ${best.number}. ${sum}` : `${sum} No trial has worked yet.`;
  caption(figure, words, legend(["dot", "finished"], ["line", "best so far"], crashes && ["crash", "crashed"], rows.some((row) => row.failed && row.status === "finished") && ["hollow", "violated a limit"]));
  return undefined;
}

function drawRun(chart, info, rows) {
  const sign = info.direction === "maximize" ? -1 : 1;
  const line = [];
  const marks = [];
  let best = null;
  rows.forEach((row, index) => {
    const x = chart.px(index + 1);
    const good = row.status === "finished" && !row.failed;
    if (good && (!best || sign * row.objective < sign * best.objective)) best = row;
    if (best) line.push([x, chart.py(best.objective)]);
    const words = `Trial ${row.number}: ${row.status === "crashed" ? `crashed ${row.reason}` : short(row.objective, 6)}`;
    marks.push(row.status === "crashed" ? cross(x, MARGIN.top + 8, words, 4) : dot(x, chart.py(row.objective), words, good ? "" : "hollow", rows.length > 150 ? 3 : 4.5));
  });
  if (line.length) chart.picture.append(svg("path", { class: "best-line", d: steps([...line, [chart.right, line.at(-1)[1]]]) }));
  chart.picture.append(...marks);
  return best;
}

// --- the limit -------------------------------------------------------------------------------------

let output = "";
let chosen = ""; // by a person

export function renderLimit(page) {
  const { info, limits, relation } = page.state;
  const figure = byId("limit");
  const known = info.constraints.filter((one) => one.threshold !== null).map((one) => one.name);
  const names = ["objective", ...info.constraints.map((one) => one.name)].filter((name) => Object.hasOwn(limits, name) || page.rows.some((row) => Object.hasOwn(row.thresholds, name)));
  controls(page, info, names);
  figure.dataset.trials = told(page.rows).length;
  if (!names.length) return empty(figure, relation || "No limit is known yet. It is learned from costs and crashes, or from broken limits.");
  output = names.includes(chosen) ? chosen : names[0];
  const [now, ...doubt] = own(limits, output) ?? [null, 0];
  const parts = history(info, page.rows, output);
  const values = [...parts.seen, ...parts.believed, ...parts.worst].map((one) => one[1]);
  if (now !== null) values.push(now);
  if (!values.length) return empty(figure, "No limit is known yet.");
  const name = output === "objective" ? costName(info) : label(info, output);
  const chart = frame(figure.querySelector(".plot"), { x: { low: 0, high: parts.count + 1 }, y: bounds(values), xLabel: "results", yLabel: name });
  drawLimit(chart, parts, now);
  caption(figure, limitWords(names.includes("objective") && output !== "objective" ? "" : relation, now, doubt, known.includes(output)), legend(["dot", "seen"], ["worst", "worst that worked"], ["limit", "limit as believed"], parts.bands.length && ["deviation", "± its standard deviation"], parts.failed.length && ["crash", "failed"]));
  return undefined;
}

function limitWords(relation, now, [deviation, low, high], given) {
  const range = low === undefined ? "" : ` (95 %: ${short(low, 3)} to ${short(high, 3)})`;
  const learned = `The learned limit is ${short(now, 4)} ± ${short(deviation, 2)}${range}.`;
  const value = given ? `The limit is given: ${short(now, 4)}.` : learned;
  return `${now === null ? "" : value} ${relation}`.trim();
}

function controls(page, info, names) {
  const place = byId("limit-controls");
  const key = JSON.stringify(names);
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  if (names.length < 2) return place.replaceChildren();
  const select = el("select", { id: "limit-output" }, ...names.map((name) => el("option", { value: name, text: name === "objective" ? costName(info) : label(info, name) })));
  select.value = names.includes(chosen) ? chosen : names[0];
  select.addEventListener("change", () => {
    chosen = select.value;
    renderLimit(page);
  });
  return place.replaceChildren(el("label", { for: "limit-output" }, "Limit of", select));
}

function history(info, rows, name) {
  const sign = info.direction === "maximize" && name === "objective" ? -1 : 1;
  const limit = name === "objective" ? null : (info.constraints.find((one) => one.name === name)?.threshold ?? null);
  const found = { seen: [], believed: [], bands: [], worst: [], failed: [], count: 0 };
  for (const row of told(rows)) {
    found.count += 1;
    const value = name === "objective" ? row.objective : own(row.constraints, name);
    const beyond = limit !== null && typeof value === "number" && value > limit;
    const lost = name === "objective" ? row.status === "crashed" : value === "violated" || beyond;
    if (lost) found.failed.push([found.count, row.number]);
    if (typeof value === "number") found.seen.push([found.count, value, row.number]);
    const before = found.worst.at(-1);
    if (typeof value === "number" && !beyond && (!before || sign * value > sign * before[1])) found.worst.push([found.count, value]);
    else if (before) found.worst.push([found.count, before[1]]);
    if (typeof own(row.thresholds, name) !== "number") continue;
    found.believed.push([found.count, row.thresholds[name]]);
    if (own(row.deviations, name)) found.bands.push([found.count, row.thresholds[name], row.deviations[name]]);
  }
  return found;
}

function drawLimit(chart, parts, now) {
  const points = (list) => list.map(([x, y]) => [chart.px(x), chart.py(y)]);
  drawBand(chart, parts.bands);
  if (parts.worst.length) chart.picture.append(svg("path", { class: "worst-line", d: steps(points(parts.worst)) }));
  if (parts.believed.length) chart.picture.append(svg("path", { class: "limit-line", d: points(parts.believed).map(([x, y], i) => `${i ? "L" : "M"}${x} ${y}`).join("") }));
  if (now !== null) chart.picture.append(svg("line", { class: "limit-line now", x1: chart.left, x2: chart.right, y1: chart.py(now), y2: chart.py(now) }));
  for (const [x, y, number] of parts.seen) chart.picture.append(dot(chart.px(x), chart.py(y), `Trial ${number}: ${short(y)}`, "", 3));
  for (const [x, number] of parts.failed) chart.picture.append(cross(chart.px(x), chart.top + 4, `Trial ${number} failed`, 4));
}

// The standard deviation of the limit over the results; where it is huge, it ends at the edge of the picture.
function drawBand(chart, bands) {
  if (bands.length < 2) return;
  const inside = (value) => Math.min(Math.max(chart.py(value) || chart.bottom, chart.top), chart.bottom); // NaN: no log
  const edge = (sign) => bands.map(([x, y, deviation]) => `${chart.px(x)} ${inside(y + sign * deviation)}`);
  chart.picture.append(svg("path", { class: "band limit-band", d: `M${[...edge(1), ...edge(-1).reverse()].join("L")}Z` }));
}

export function empty(figure, text) {
  figure.querySelector(".plot").replaceChildren(el("p", { class: "empty", text }));
  figure.querySelector("figcaption").replaceChildren();
  return undefined;
}

// The model over two parameters, or along one, the others held.

import { byId, costName, el, label, later, short, svg } from "/dom.js";
import { locate, own, valueAt, varying } from "/space.js";
import { post } from "/api.js";
import { cross, dot, empty, legend, niceTicks } from "/charts.js";
import { openOwn } from "/next.js";

const VIRIDIS = ["#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];
const CHANCE = ["#b2182b", "#d6604d", "#f4a582", "#fddbc7", "#f7f7f7", "#d1e5f0", "#92c5de", "#4393c3", "#2166ac"];
const NEXT = "acquisition"; // a layer that takes a search: fetched only when someone looks at it
const view = { x: "", y: "", layer: "mean", at: {}, touched: false, shown: null, asked: 0, key: "", observer: null };

export function setUpMap(page) {
  const { info } = page.state;
  const names = varying(info).map((one) => one.name);
  if (!names.length) return empty(byId("map"), "All parameters are constants: there is nothing to draw.");
  [view.x, view.y] = [names[0], names[1] || ""];
  [view.shown, view.key] = [null, ""];
  const axis = (id, text, options, value, change) => {
    const select = el("select", { id }, ...options.map(([key, shown]) => el("option", { value: key, text: shown })));
    select.value = value;
    select.addEventListener("change", () => change(select.value));
    return el("label", { for: id }, text, select);
  };
  const labels = names.map((name) => [name, label(info, name)]);
  byId("map-controls").replaceChildren(
    axis("map-x", "Across", labels, view.x, (value) => choose(page, "x", value)),
    axis("map-y", "Up", [...labels, ["", "(a line instead)"]], view.y, (value) => choose(page, "y", value)),
    axis("map-layer", "Show", layers(info), view.layer, (value) => {
      view.layer = value;
      if (value === NEXT && view.shown && !Object.hasOwn(view.shown.layers, NEXT)) fetchMap(page);
      else draw(page);
    }),
  );
  if (!view.observer) {
    view.observer = new ResizeObserver(later(() => draw(page), 60));
    view.observer.observe(byId("map").querySelector(".plot"));
  }
  return heldControls(page);
}

const layers = (info) => [
  ["mean", `expected ${costName(info)}`],
  ["std", "how uncertain that is"],
  ["success", "success probability"],
  [NEXT, "where to try next"],
  ...info.constraints.map((one) => [`constraint:${one.name}`, `expected ${label(info, one.name)}`]),
];

function choose(page, which, value) {
  const other = which === "x" ? "y" : "x";
  if (value === view[other]) view[other] = view[which];
  view[which] = value;
  if (!view.x) [view.x, view.y] = [view.y, ""];
  byId("map-x").value = view.x;
  byId("map-y").value = view.y;
  heldControls(page);
  fetchMap(page);
}

// --- the other parameters ----------------------------------------------------------------------------

function held(page) {
  const { info, best, offer } = page.state;
  const start = (best && best.params) || (offer && offer.params) || {};
  const known = { ...start, ...(view.touched ? view.at : {}) };
  const value = (one) => (Object.hasOwn(known, one.name) ? known[one.name] : valueAt(one, 0.5));
  return Object.fromEntries(info.parameters.map((one) => [one.name, value(one)]));
}

// As the console reads params: choices by index.
const coded = (info, values) =>
  Object.fromEntries(info.parameters.map((one) => [one.name, one.type === "choice" ? one.choices.findIndex((option) => option === values[one.name]) : values[one.name]]));

function heldControls(page) {
  const { info } = page.state;
  const others = varying(info).filter((one) => one.name !== view.x && one.name !== view.y);
  const values = held(page);
  const change = later(() => fetchMap(page), 120);
  const sliders = others.map((one, index) => {
    const id = `held-${index}`;
    const shown = el("output", { for: id, text: short(values[one.name]) });
    const slider = el("input", { id, type: "range", min: 0, max: 1000, step: 1, value: Math.round(1000 * locate(one, values[one.name])), "aria-valuetext": short(values[one.name]) });
    slider.addEventListener("input", () => {
      view.at = { ...held(page), [one.name]: valueAt(one, Number(slider.value) / 1000) };
      view.touched = true;
      shown.textContent = short(view.at[one.name]);
      slider.setAttribute("aria-valuetext", shown.textContent);
      change();
    });
    return el("label", { for: id, class: "slider" }, el("span", {}, `${label(info, one.name)} = `, shown), slider);
  });
  const reset = el("button", { type: "button", class: "quiet", text: "As in the best guess", onclick: () => {
    view.touched = false;
    heldControls(page);
    fetchMap(page);
  } });
  byId("held").hidden = !others.length;
  byId("held-controls").replaceChildren(...sliders, reset);
}

// --- fetch and draw ----------------------------------------------------------------------------------

export function renderMap(page) {
  const { model, best, info } = page.state;
  if (!varying(info).length) return;
  if (!model.ready) {
    view.shown = null;
    view.key = "";
    const words = model.problem || (page.rows.length && model.busy ? "The model is being fitted …" : "Nothing to show yet: the model needs a first result.");
    empty(byId("map"), words);
    return;
  }
  const key = JSON.stringify([model.basis, best && best.params, view.touched]);
  if (key !== view.key) {
    view.key = key;
    if (!view.touched) heldControls(page);
    fetchMap(page);
  } else draw(page);
}

async function fetchMap(page) {
  if (!page.state.model.ready) return;
  view.asked += 1;
  const mine = view.asked;
  const at = held(page);
  byId("map").setAttribute("aria-busy", "true");
  try {
    const found = await post("picture", { x: view.x, y: view.y, params: coded(page.state.info, at), acquisition: view.layer === NEXT });
    if (mine !== view.asked) return;
    view.shown = { ...found, at };
    byId("map").setAttribute("aria-busy", "false");
    draw(page);
  } catch (problem) {
    if (mine === view.asked && !view.shown) empty(byId("map"), problem.message);
    if (mine === view.asked) view.key = "";
  }
  if (mine === view.asked) byId("map").setAttribute("aria-busy", "false");
}

const EDGE = { left: 58, right: 14, top: 10, bottom: 40 };

function draw(page) {
  if (!view.shown) return;
  const { info } = page.state;
  const figure = byId("map");
  const plot = figure.querySelector(".plot");
  const found = view.shown;
  if (!Object.hasOwn(found.layers, view.layer)) {
    if (figure.getAttribute("aria-busy") === "true") return; // it is on its way
    view.layer = "success"; // the one thing known before any value has been seen
    byId("map-layer").value = view.layer;
  }
  const one = Object.fromEntries(info.parameters.map((parameter) => [parameter.name, parameter]));
  const width = Math.max(plot.clientWidth, 240);
  const size = { width, height: Math.min(Math.max(0.72 * width, 220), 430) };
  const parts = found.y === null ? drawLine(page, one[found.x], found, size) : drawMap(page, one[found.x], one[found.y], found, size);
  plot.replaceChildren(...parts.nodes);
  figure.dataset.basis = found.basis;
  const fixed = info.parameters.filter((p) => p.name !== found.x && p.name !== found.y && varying(info).includes(p)).map((p) => `${p.name} = ${short(found.at[p.name])}`);
  const slice = fixed.length ? ` at ${fixed.join(", ")}` : "";
  const scale = view.layer === NEXT ? " 1 is the most promising point of this picture; the first trials are spread evenly instead." : "";
  figure.querySelector("figcaption").replaceChildren(el("p", { text: `${parts.words}${slice}.${scale} ${summary(page)}` }), parts.legend);
}

function summary(page) {
  const { best, info } = page.state;
  if (!best) return "";
  const where = varying(info).map((one) => `${one.name} ${short(best.params[one.name], 4)}`).join(", ");
  return `Best guess: ${where}.`;
}

function axes(picture, size, x, y, info) {
  const right = size.width - EDGE.right;
  const bottom = size.height - EDGE.bottom;
  const px = (position) => EDGE.left + position * (right - EDGE.left);
  const py = (position) => bottom - position * (bottom - EDGE.top);
  for (const [position, text] of ticks(x, size.width < 420 ? 3 : 6)) {
    picture.append(svg("line", { class: "axis", x1: px(position), x2: px(position), y1: bottom, y2: bottom + 4 }));
    picture.append(svg("text", { class: "tick", x: px(position), y: bottom + 17, "text-anchor": "middle", text }));
  }
  picture.append(svg("text", { class: "name", x: (EDGE.left + right) / 2, y: size.height - 5, "text-anchor": "middle", text: label(info, x.name) }));
  for (const [position, text] of y ? ticks(y, 5) : []) {
    picture.append(svg("line", { class: "axis", x1: EDGE.left - 4, x2: EDGE.left, y1: py(position), y2: py(position) }));
    picture.append(svg("text", { class: "tick", x: EDGE.left - 7, y: py(position) + 4, "text-anchor": "end", text: text.slice(0, 9) }));
  }
  if (y) picture.append(svg("text", { class: "name", "text-anchor": "middle", transform: `translate(13 ${(EDGE.top + bottom) / 2}) rotate(-90)`, text: label(info, y.name) }));
  return { px, py, right, bottom };
}

function ticks(one, count) {
  if (one.type === "choice") return one.choices.map((option) => [locate(one, option), short(option)]);
  if (one.log) {
    const powers = [];
    for (let p = Math.ceil(Math.log10(one.low) - 1e-9); 10 ** p <= one.high * (1 + 1e-9); p += 1) powers.push(Number((10 ** p).toPrecision(6)));
    const values = powers.length > 1 ? powers : [one.low, one.high];
    return values.map((value) => [locate(one, value), short(value)]);
  }
  const values = niceTicks(one.low, one.high, count).filter((value) => one.type !== "int" || Number.isInteger(value));
  return values.map((value) => [one.step ? locate(one, value) : (value - one.low) / (one.high - one.low), short(value)]);
}

function drawMap(page, x, y, found, size) {
  const { info } = page.state;
  const values = found.layers[view.layer];
  const chance = view.layer === "success";
  const [low, high] = chance || view.layer === NEXT ? [0, 1] : [Math.min(...values), Math.max(...values)];
  const canvas = el("canvas", { width: found.columns, height: found.rows, class: "heat", "aria-hidden": "true" });
  paint(canvas, found, values, low, high, chance ? CHANCE : VIRIDIS);
  const picture = svg("svg", { width: size.width, height: size.height, viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-label": `Map of ${layerName(info)} over ${x.name} and ${y.name}` });
  const at = axes(picture, size, x, y, info);
  Object.assign(canvas.style, { left: `${EDGE.left}px`, top: `${EDGE.top}px`, width: `${at.right - EDGE.left}px`, height: `${at.bottom - EDGE.top}px` });
  picture.append(svg("path", { class: "contour", d: contour(found, found.layers.success, 0.5, at) }));
  picture.append(svg("rect", { class: "frame", x: EDGE.left, y: EDGE.top, width: at.right - EDGE.left, height: at.bottom - EDGE.top }));
  marks(page, picture, (params) => [at.px(locate(x, params[x.name])), at.py(locate(y, params[y.name]))], found.at, [x.name, y.name]);
  picture.addEventListener("click", (event) => pick(page, event, picture, at, x, y));
  const holder = el("div", { class: "holder" }, canvas, picture);
  return { nodes: [holder, scaleBar(low, high, chance)], words: `${layerName(info)} over ${x.name} and ${y.name}`, legend: keys(true) };
}

const layerName = (info) => {
  const name = layers(info).find(([key]) => key === view.layer)[1];
  return name[0].toUpperCase() + name.slice(1);
};

const keys = (map) => legend([map ? "white" : "dot", "worked"], ["crash", "failed"], ["diamond", "under way"], ["star", "best guess"], ["ring", "suggestion"], map && ["contour", "success 50 %"]);

function colour(stops, share) {
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(place), stops.length - 2);
  const part = (k, text) => parseInt(text.slice(1 + 2 * k, 3 + 2 * k), 16);
  return [0, 1, 2].map((k) => Math.round(part(k, stops[i]) + (place - i) * (part(k, stops[i + 1]) - part(k, stops[i]))));
}

function paint(canvas, found, values, low, high, stops) {
  const context = canvas.getContext("2d");
  const image = context.createImageData(found.columns, found.rows);
  for (let row = 0; row < found.rows; row += 1)
    for (let column = 0; column < found.columns; column += 1) {
      const share = (values[row * found.columns + column] - low) / (high - low || 1);
      const place = 4 * ((found.rows - 1 - row) * found.columns + column);
      image.data.set([...colour(stops, share), 255], place);
    }
  context.putImageData(image, 0, 0);
}

function scaleBar(low, high, chance) {
  const canvas = el("canvas", { width: 128, height: 1, class: "scale", "aria-hidden": "true" });
  const values = Array.from({ length: 128 }, (_, i) => i / 127);
  paint(canvas, { columns: 128, rows: 1 }, values, 0, 1, chance ? CHANCE : VIRIDIS);
  const text = (value) => (chance ? `${100 * value} %` : short(value, 3));
  return el("div", { class: "scale-row" }, el("span", { text: text(low) }), canvas, el("span", { text: text(high) }));
}

// Lines where a map crosses a level, between the middles of its cells.
function contour(found, values, level, at) {
  const { columns, rows } = found;
  const value = (i, j) => values[j * columns + i];
  const where = (i, j) => [at.px((i + 0.5) / columns), at.py((j + 0.5) / rows)];
  const between = (a, b) => {
    const share = (level - value(...a)) / (value(...b) - value(...a));
    const [ax, ay] = where(...a);
    const [bx, by] = where(...b);
    return `${(ax + share * (bx - ax)).toFixed(1)} ${(ay + share * (by - ay)).toFixed(1)}`;
  };
  const paths = [];
  for (let j = 0; j + 1 < rows; j += 1)
    for (let i = 0; i + 1 < columns; i += 1) {
      const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]];
      const cut = [];
      corners.forEach((corner, k) => {
        const next = corners[(k + 1) % 4];
        if (value(...corner) < level !== value(...next) < level) cut.push(between(corner, next));
      });
      for (let k = 0; k + 1 < cut.length; k += 2) paths.push(`M${cut[k]}L${cut[k + 1]}`);
    }
  return paths.join("");
}

function near(info, params, at, shown) {
  const others = varying(info).filter((one) => !shown.includes(one.name));
  if (!others.length) return 1;
  const apart = others.map((one) => (one.type === "choice" ? Number(params[one.name] !== at[one.name]) : locate(one, params[one.name]) - locate(one, at[one.name])));
  return Math.max(0.15, 1 - 2 * Math.sqrt(apart.reduce((sum, value) => sum + value * value, 0) / apart.length));
}

function marks(page, picture, where, at, shown) {
  const { info, best, offer } = page.state;
  const whole = (params) => info.parameters.every((one) => Object.hasOwn(params, one.name));
  for (const row of page.rows) {
    if (!["finished", "crashed", "pending"].includes(row.status) || !whole(row.params)) continue;
    const [x, y] = where(row.params, row);
    if (x === null || y === null) continue;
    const failed = failedHere(info, row);
    const words = `Trial ${row.number}: ${row.status === "finished" ? short(row.objective, 6) : `${row.status} ${row.reason}`}`;
    const node = failed ? cross(x, y, words) : row.status === "pending" ? diamond(x, y, words) : dot(x, y, words, "on-map");
    node.setAttribute("opacity", near(info, row.params, at, shown).toFixed(2));
    picture.append(node);
  }
  const point = (params, make) => {
    const [x, y] = params ? where(params, null) : [null, null];
    if (x !== null && y !== null) picture.append(make(x, y));
  };
  point(offer && offer.params, (x, y) => svg("circle", { class: "mark ring", cx: x, cy: y, r: 9 }, svg("title", { text: "The suggestion" })));
  point(best && best.params, (x, y) => svg("path", { class: "mark star", d: star(x, y, 9) }, svg("title", { text: "The best guess" })));
}

// A map of one output marks what failed in it; that of success, and of where to try next, whatever failed.
function failedHere(info, row) {
  if (view.layer === "mean" || view.layer === "std") return row.status === "crashed";
  if (!view.layer.startsWith("constraint:")) return row.failed;
  const one = info.constraints.find((other) => `constraint:${other.name}` === view.layer);
  const value = own(row.constraints, one.name);
  return value === "violated" || (one.threshold !== null && typeof value === "number" && value > one.threshold);
}

const diamond = (x, y, title) => svg("path", { class: "mark diamond", d: `M${x} ${y - 7}L${x + 7} ${y}L${x} ${y + 7}L${x - 7} ${y}Z` }, svg("title", { text: title }));

function star(x, y, size) {
  const points = Array.from({ length: 10 }, (_, i) => {
    const radius = i % 2 ? size * 0.42 : size;
    const angle = (Math.PI * i) / 5 - Math.PI / 2;
    return `${(x + radius * Math.cos(angle)).toFixed(1)} ${(y + radius * Math.sin(angle)).toFixed(1)}`;
  });
  return `M${points.join("L")}Z`;
}

// A press on the map proposes those values.
function pick(page, event, picture, at, x, y) {
  const box = picture.getBoundingClientRect();
  const across = (event.clientX - box.left - EDGE.left) / (at.right - EDGE.left);
  const up = (at.bottom - (event.clientY - box.top)) / (at.bottom - EDGE.top);
  if (across < 0 || across > 1 || up < 0 || up > 1) return;
  openOwn(page, { ...view.shown.at, [x.name]: valueAt(x, across), [y.name]: valueAt(y, up) });
}

// --- along one parameter -----------------------------------------------------------------------------

function drawLine(page, x, found, size) {
  const { info } = page.state;
  const values = found.layers[view.layer];
  const spreads = view.layer === "mean" ? found.layers.std : found.layers[view.layer.replace("constraint:", "std:")];
  const band = view.layer === "mean" || view.layer.startsWith("constraint:") ? spreads : null;
  const measured = (row) => (view.layer === "mean" ? row.objective : own(row.constraints, view.layer.slice("constraint:".length)));
  const seen = band ? page.rows.filter((row) => row.status === "finished").map(measured).filter((value) => typeof value === "number") : [];
  let low = Math.min(...values.map((value, i) => value - (band ? 2 * band[i] : 0)), ...seen);
  let high = Math.max(...values.map((value, i) => value + (band ? 2 * band[i] : 0)), ...seen);
  if (view.layer === "success" || view.layer === NEXT) [low, high] = [0, 1];
  const picture = svg("svg", { width: size.width, height: size.height, viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-label": `${layerName(info)} along ${x.name}` });
  const at = axes(picture, size, x, null, info);
  const py = (value) => at.py((value - low) / (high - low || 1));
  const end = values.length - 1;
  for (const tick of niceTicks(low, high, 4)) {
    picture.append(svg("line", { class: "grid", x1: EDGE.left, x2: at.right, y1: py(tick), y2: py(tick) }));
    picture.append(svg("text", { class: "tick", x: EDGE.left - 7, y: py(tick) + 4, "text-anchor": "end", text: short(tick, 4) }));
  }
  const path = (list) => list.map((value, i) => `${i ? "L" : "M"}${at.px(i / end).toFixed(1)} ${py(value).toFixed(1)}`).join("");
  if (band) {
    const upper = values.map((value, i) => value + 2 * band[i]);
    const lower = values.map((value, i) => value - 2 * band[i]);
    const back = lower.map((value, i) => `L${at.px(i / end).toFixed(1)} ${py(value).toFixed(1)}`).reverse().join("");
    picture.append(svg("path", { class: "band", d: `${path(upper)}${back}Z` }));
  }
  picture.append(svg("path", { class: "curve", d: path(values) }));
  const where = (params, row) => {
    const value = row && band ? measured(row) : null;
    return [at.px(locate(x, params[x.name])), typeof value === "number" ? py(value) : at.bottom - 8];
  };
  marks(page, picture, where, found.at, [x.name]);
  return { nodes: [picture], words: `${layerName(info)} along ${x.name}${band ? ", with two standard deviations" : ""}`, legend: keys(false) };
}

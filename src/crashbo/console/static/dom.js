// Small helpers: elements are made from text, never from HTML.

import { own } from "/space.js";

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "text") node.textContent = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function svg(tag, props = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(props)) {
    if (key === "text") node.textContent = value;
    else if (value !== undefined && value !== null) node.setAttribute(key, String(value));
  }
  node.append(...children);
  return node;
}

export const byId = (id) => document.getElementById(id);

export function short(value, digits = 5) {
  if (value === null || value === undefined) return "null";
  if (typeof value !== "number") return String(value);
  if (!Number.isFinite(value)) return "?";
  return String(Number(value.toPrecision(digits)));
}

export const percent = (value) => {
  if (value > 0.99) return "over 99 %";
  if (value < 0.01) return "under 1 %";
  return `${Math.round(100 * value)} %`;
};

export const unit = (info, name) => (Object.hasOwn(info.units, name) ? info.units[name] : "");

export const label = (info, name, shown = name) => (unit(info, name) ? `${shown} [${unit(info, name)}]` : shown);

export const costName = (info) => label(info, "objective", "cost");

// A definition list of params, large enough to read from beside a machine.
export function paramList(info, params) {
  const list = el("dl", { class: "params" });
  for (const one of info.parameters) {
    if (!Object.hasOwn(params, one.name)) continue;
    const value = el("dd", { text: short(params[one.name]) });
    if (unit(info, one.name)) value.append(el("span", { class: "unit", text: ` ${unit(info, one.name)}` }));
    list.append(el("div", {}, el("dt", { text: one.name }), value));
  }
  return list;
}

export const spread = ([mean, std], digits = 4) => `${short(mean, digits)} ± ${short(std, 2)}`;

// Expected cost, success probability and constraints, as facts in a row.
export function facts(info, expected, success) {
  const list = el("dl", { class: "facts" });
  const add = (term, text, extra) => list.append(el("div", {}, el("dt", { text: term }), el("dd", { text }), extra));
  const cost = expected && expected.objective;
  if (cost) add(`expected ${costName(info)}`, spread(cost));
  if (success !== null && success !== undefined) {
    const bar = el("span", { class: "bar", "aria-hidden": "true" }, el("span"));
    bar.firstChild.style.width = `${Math.round(100 * success)}%`;
    bar.classList.toggle("low", success < 0.5);
    add("success probability", percent(success), bar);
  }
  for (const one of info.constraints) {
    const found = own(expected && expected.constraints, one.name);
    if (found) add(`expected ${label(info, one.name)}`, spread(found));
  }
  return list;
}

// A labelled field with a place for its error beside it.
export function field(id, title, input, hint) {
  input.id = id;
  const about = [];
  const parts = [el("label", { for: id, text: title }), input];
  if (hint) {
    parts.push(el("p", { class: "hint", id: `${id}-hint`, text: hint }));
    about.push(`${id}-hint`);
  }
  parts.push(el("p", { class: "error", id: `${id}-error`, hidden: true }));
  about.push(`${id}-error`);
  input.setAttribute("aria-describedby", about.join(" "));
  return el("div", { class: "field" }, ...parts);
}

export function setError(input, message) {
  const place = input.closest(".field").querySelector(".error"); // its box may have left the page meanwhile
  input.setAttribute("aria-invalid", message ? "true" : "false");
  place.textContent = message || "";
  place.hidden = !message;
}

// Puts messages beside the fields they are about; gives those that have no field.
export function showErrors(fields, wrong) {
  const left = [];
  let first = null;
  for (const [name, input] of Object.entries(fields)) {
    const message = wrong && Object.hasOwn(wrong, name) ? wrong[name] : "";
    setError(input, message);
    if (message && !first) first = input;
  }
  for (const [name, message] of Object.entries(wrong || {})) if (!Object.hasOwn(fields, name)) left.push(message);
  if (first) first.focus();
  return left;
}

// Says why something was refused: beside the fields it is about, else in a place of its own.
export function explain(problem, inputs, place) {
  const fields = problem.fields || {};
  const left = showErrors(inputs, fields);
  place.textContent = left.join(" ") || (Object.keys(fields).length ? "" : problem.message);
  place.hidden = !place.textContent;
}

// Moves the focus, but never away from a field in which someone has begun to type.
export function lead(node, { from = null } = {}) {
  const active = document.activeElement;
  const typing = active && ["INPUT", "SELECT", "TEXTAREA"].includes(active.tagName);
  if (!typing || (from && from.contains(active))) node.focus({ preventScroll: true });
}

let timer = 0;
export function say(text, { bad = false, action = null } = {}) {
  const place = byId("said");
  place.className = bad ? "toast bad shown" : "toast shown";
  place.replaceChildren(el("span", { text }));
  if (action) place.append(el("button", { type: "button", text: action.text, onclick: action.run }));
  place.append(el("button", { type: "button", class: "close", "aria-label": "Close message", text: "×", onclick: hush }));
  clearTimeout(timer);
  timer = setTimeout(hush, action || bad ? 15000 : 6000);
}

function hush() {
  byId("said").className = "toast";
  byId("said").replaceChildren();
}

export function later(run, milliseconds) {
  let waiting = 0;
  return (...details) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => run(...details), milliseconds);
  };
}

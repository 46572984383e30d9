// The suggestion: take it, skip it, or try one's own values.

import { byId, costName, el, explain, facts, field, later, label, lead, paramList, percent, say, setError, short, showErrors, spread } from "/dom.js";
import { post } from "/api.js";
import { own, valueAt } from "/space.js";

export function renderNext(page) {
  const { offer, model, info } = page.state;
  const key = JSON.stringify([offer && offer.key, offer && offer.current, model.busy, model.problem]);
  const place = byId("offer");
  if (place.dataset.key === key) return;
  const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
  place.dataset.key = key;
  place.replaceChildren(...(offer ? offered(page, offer) : [...missing(model), ownButton(page)]));
  place.setAttribute("aria-busy", String(model.busy));
  if (focused) (byId(focused) || byId("next-title")).focus();
}

function missing(model) {
  if (model.problem) {
    const text = `No suggestion now. ${model.problem} You can still record results and try your own values.`;
    return [el("p", { class: "note bad", text })];
  }
  return [el("p", { class: "computing", text: "Computing the next suggestion … You can record results meanwhile." })];
}

function offered(page, offer) {
  const { info, model } = page.state;
  const parts = [paramList(info, offer.params), facts(info, offer.expected, offer.success_probability)];
  if (offer.why) parts.push(el("p", { class: "why", text: offer.why }));
  if (!offer.expected.trials && !page.state.counts.finished && !page.state.counts.crashed) parts.push(el("p", { class: "muted", text: "No prediction yet: the model needs a first result." }));
  if (model.problem) parts.push(el("p", { class: "note bad", text: model.problem }));
  if (!offer.current) parts.push(el("p", { class: "computing", text: "Taking the latest result into account …" }));
  else if (model.busy) parts.push(el("p", { class: "computing", text: "An updated suggestion is being computed …" }));
  const off = !offer.current;
  parts.push(
    el(
      "div",
      { class: "row" },
      el("button", { id: "take", type: "button", class: "primary whole", disabled: off, text: "Take it", onclick: () => claim(page, "take", offer) }),
      el("button", { id: "skip", type: "button", disabled: off, text: "Skip it", onclick: () => claim(page, "skip", offer) }),
      ownButton(page),
    ),
  );
  return parts;
}

const ownButton = (page) =>
  el("button", { id: "try-own", type: "button", class: "quiet grow", text: "Try my own values …", onclick: () => openOwn(page) });

async function claim(page, what, offer) {
  try {
    const { number } = await post(what, { offer: offer.key, by: page.by() });
    if (what === "take") page.mine(number);
    say(what === "take" ? `Trial ${number} is yours. Run it, then enter what came of it.` : "Skipped. Something else will be suggested.");
    await page.update();
    if (what === "take") page.focusTrial(number);
    else lead(byId("next-title"));
  } catch (problem) {
    say(problem.message, { bad: true });
    await page.update();
  }
}

// --- one's own values --------------------------------------------------------------------------

export function openOwn(page, start = null) {
  const { info, offer, best } = page.state;
  const last = page.rows.at(-1);
  const values = start || (offer && offer.params) || (best && best.params) || (last && last.params);
  const dialog = byId("own");
  const fields = {};
  const shown = el("div", { class: "prediction", role: "status" }, el("p", { class: "muted", text: "Enter values to see what the model expects." }));
  const rows = info.parameters.map((one, index) => {
    const known = own(values, one.name);
    const value = known === undefined ? valueAt(one, 0.5) : known;
    const input = one.type === "choice" ? choice(one, value) : number(one, value);
    fields[`param:${one.name}`] = input;
    return field(`own-${index}`, label(info, one.name), input, one.type === "choice" ? "" : range(one));
  });
  const form = el(
    "form",
    { class: "stack", novalidate: true },
    el("h2", { id: "own-title", text: "Try my own values" }),
    el("div", { class: "fields" }, ...rows),
    shown,
    el("p", { class: "error", role: "alert", hidden: true }),
    el(
      "div",
      { class: "row" },
      el("button", { class: "primary grow", text: "Start this experiment" }),
      el("button", { type: "button", text: "Cancel", onclick: () => dialog.close() }),
    ),
  );
  const predict = later(() => showPrediction(info, fields, shown), 250);
  form.addEventListener("input", predict);
  form.addEventListener("submit", (event) => begin(event, page, dialog, fields));
  dialog.replaceChildren(form);
  dialog.showModal();
  showPrediction(info, fields, shown);
}

function choice(one, value) {
  const select = el("select");
  one.choices.forEach((option, index) => select.append(el("option", { value: index, text: short(option) })));
  const found = one.choices.findIndex((option) => option === value);
  select.value = String(found < 0 ? 0 : found);
  return select;
}

const number = (one, value) =>
  el("input", { type: "text", inputmode: one.type === "int" ? "numeric" : "decimal", autocomplete: "off", maxlength: 40, value: value === undefined ? "" : String(Number(Number(value).toPrecision(8))) });

const range = (one) =>
  `${one.type === "int" ? "whole number, " : ""}${short(one.low)} to ${short(one.high)}${one.log ? ", log scale" : ""}${one.step && one.step !== 1 ? `, steps of ${short(one.step)}` : ""}`;

export const readParams = (fields) =>
  Object.fromEntries(
    Object.entries(fields).map(([name, input]) => [
      name.slice("param:".length),
      input.tagName === "SELECT" ? Number(input.value) : input.value.trim(),
    ]),
  );

let asked = 0;
async function showPrediction(info, fields, shown) {
  asked += 1;
  const mine = asked;
  try {
    const found = await post("predict", { params: readParams(fields) });
    if (mine !== asked) return;
    showErrors(fields, {});
    shown.replaceChildren(facts(info, found, found.success_probability), el("p", { class: "muted", text: expectation(info, found) }));
  } catch (problem) {
    if (mine !== asked) return;
    if (Object.keys(problem.fields || {}).length) {
      for (const [name, input] of Object.entries(fields)) setError(input, own(problem.fields, name));
      const whole = own(problem.fields, "params"); // what is wrong with the values together
      shown.replaceChildren(el("p", { class: "muted", text: `No prediction for these values. ${whole || ""}`.trim() }));
    } else shown.replaceChildren(el("p", { class: "muted", text: `No prediction: ${problem.message} You can start it anyway.` }));
  }
}

function expectation(info, found) {
  const cost = found.objective ? `${costName(info)} ${spread(found.objective)}` : "no cost seen yet";
  return `From ${found.trials} results: ${cost}, works with ${percent(found.success_probability)}.`;
}

async function begin(event, page, dialog, fields) {
  event.preventDefault();
  const place = event.target.querySelector("[role=alert]");
  try {
    const { number } = await post("start", { params: readParams(fields), by: page.by() });
    page.mine(number);
    dialog.close();
    say(`Trial ${number} is yours. Run it, then enter what came of it.`);
    await page.update();
    page.focusTrial(number);
  } catch (problem) {
    explain(problem, fields, place);
  }
}

// The table of trials, and the dialog where one is looked at and corrected.

import { byId, costName, el, explain, facts, field, label, paramList, say, short } from "/dom.js";
import { post } from "/api.js";
import { outcomeFields, readConstraints } from "/running.js";

const WORDS = {
  finished: "finished",
  crashed: "crashed",
  pending: "under way",
  starting: "starting",
  transient: "transient",
  deleted: "deleted",
  skipped: "skipped",
  waiting: "waiting",
  pruned: "pruned",
  ignored: "left out",
};
const FEW = 100;
const lines = new Map();
let all = false;

export function setUpTrials(page) {
  byId("filter-status").addEventListener("change", () => renderTrials(page));
  byId("filter-text").addEventListener("input", () => renderTrials(page));
  byId("more").addEventListener("click", () => {
    all = true;
    renderTrials(page);
  });
}

export function renderTrials(page) {
  const wanted = page.rows.filter((row) => row.status !== "starting" && fits(row)).reverse();
  const shown = all ? wanted : wanted.slice(0, FEW);
  byId("trials").tBodies[0].replaceChildren(...shown.map((row) => lineOf(page, row)));
  byId("more").hidden = shown.length === wanted.length;
  byId("more").textContent = `Show all ${wanted.length}`;
  byId("shown").textContent = page.rows.length ? `${shown.length} of ${page.rows.length} trials` : "No trials yet.";
}

// The head of the table for these parameters and constraints; all lines are made anew under it.
export function newHead(info) {
  lines.clear();
  const names = ["trial", "what came of it", ...info.parameters.map((one) => label(info, one.name)), costName(info), ...info.constraints.map((one) => label(info, one.name)), "reason", "by"];
  byId("trials").tHead.replaceChildren(el("tr", {}, ...names.map((text) => el("th", { scope: "col", text }))));
}

function fits(row) {
  const status = byId("filter-status").value;
  const known = ["finished", "crashed", "pending"];
  if (status === "others" ? known.includes(row.status) : status !== "all" && row.status !== status) return false;
  const text = byId("filter-text").value.trim().toLowerCase();
  const values = [...Object.values(row.params), row.objective, ...Object.values(row.constraints)].map((value) => short(value));
  return !text || [`${row.number}`, WORDS[row.status], row.reason, row.by, ...values].some((one) => one.toLowerCase().includes(text));
}

// Lines are made once for each version of a trial.
function lineOf(page, row) {
  const kept = lines.get(row.number);
  if (kept && kept.row === row) return kept.line;
  const { info } = page.state;
  const seen = (name) => (Object.hasOwn(row.constraints, name) ? short(row.constraints[name]) : "");
  const open = el("button", { type: "button", class: "link", text: String(row.number), "aria-label": `Open trial ${row.number}`, onclick: () => openTrial(page, row.number) });
  const status = el("span", { class: `status ${row.status}`, text: WORDS[row.status] });
  const line = el(
    "tr",
    { class: row.status, "data-number": row.number },
    el("th", { scope: "row" }, open),
    el("td", {}, status, row.history.length ? el("span", { class: "muted", text: " corrected" }) : null),
    ...info.parameters.map((one) => el("td", { class: "number", text: Object.hasOwn(row.params, one.name) ? short(row.params[one.name]) : "" })),
    el("td", { class: "number", text: row.objective === null ? "" : short(row.objective, 6) }),
    ...info.constraints.map((one) => el("td", { class: "number", text: seen(one.name) })),
    el("td", { class: "reason", text: row.reason }),
    el("td", { text: row.by }),
  );
  lines.set(row.number, { row, line });
  return line;
}

// --- one trial -----------------------------------------------------------------------------------

export function openTrial(page, number) {
  const row = page.row(number);
  if (!row) return;
  const { info } = page.state;
  const dialog = byId("trial");
  const state = row.objective === null ? WORDS[row.status] : `${WORDS[row.status]}, ${costName(info)} ${short(row.objective, 6)}`;
  const parts = [
    el("div", { class: "row spread" }, el("h2", { id: "trial-title", text: `Trial ${number}` }), el("button", { type: "button", class: "close", "aria-label": "Close", text: "×", onclick: () => dialog.close() })),
    el("p", {}, el("span", { class: `status ${row.status}`, text: state }), row.reason ? ` ${row.reason}` : ""),
    paramList(info, row.params),
  ];
  if (row.why) parts.push(el("p", { class: "why", text: `Why it was suggested: ${row.why}` }));
  if (row.expected) parts.push(el("p", { class: "muted", text: "Expected then:" }), facts(info, row.expected, row.success_probability));
  if (row.history.length) parts.push(historyOf(info, row));
  if (["finished", "crashed", "transient"].includes(row.status)) parts.push(correction(page, dialog, row));
  if (row.status === "deleted") parts.push(restoring(page, dialog, row));
  if (row.status === "pending") parts.push(el("p", { class: "muted", text: "It is under way: enter its result above, in its own box." }));
  dialog.replaceChildren(el("div", { class: "stack" }, ...parts));
  if (!dialog.open) dialog.showModal();
}

function historyOf(info, row) {
  const items = row.history.map((one) => {
    const words = { finished: one.objective === null ? "finished" : `${costName(info)} ${short(one.objective, 6)}`, restored: "brought back" }[one.status] || WORDS[one.status];
    const seen = Object.entries(one.constraints || {}).map(([name, value]) => `${name} ${short(value)}`);
    const time = one.time ? new Date(one.time).toLocaleString([], { dateStyle: "short", timeStyle: "short" }) : "";
    return el("li", { text: [`${time} ${words}`, ...seen, one.by && `by ${one.by}`, one.reason].filter(Boolean).join(", ") });
  });
  return el("section", {}, el("h3", { text: "What was recorded, oldest first" }), el("ol", { class: "history" }, ...items));
}

function correction(page, dialog, row) {
  const { info } = page.state;
  const fields = outcomeFields(info, "correct", row);
  const reason = el("input", { type: "text", maxlength: 1000, autocomplete: "off", value: row.reason });
  fields.inputs.reason = reason;
  const kinds = { finished: "it has a cost", crashed: "it crashed", transient: "it was transient: it says nothing" };
  const radios = Object.entries(kinds).map(([value, text]) => {
    const input = el("input", { type: "radio", name: "kind", value, id: `correct-${value}` });
    input.checked = row.status === value;
    return el("label", { class: "check", for: input.id }, input, text);
  });
  const problem = el("p", { class: "error", role: "alert", hidden: true });
  const outcome = el("div", { class: "fields" }, ...fields.nodes);
  const form = el(
    "form",
    { class: "stack", novalidate: true },
    el("h3", { text: "Correct it" }),
    el("fieldset", {}, el("legend", { text: "What is right" }), ...radios),
    outcome,
    field("correct-reason", "Reason", reason),
    problem,
    el(
      "div",
      { class: "row" },
      el("button", { class: "primary grow", text: "Store correction" }),
      el("button", { type: "button", class: "danger", text: "Delete trial", onclick: () => send(page, dialog, { number: row.number, version: row.version, status: "deleted", reason: reason.value }, fields.inputs, problem) }),
    ),
    el("p", { class: "hint", text: "What was recorded before is kept, and a deleted trial can be brought back." }),
  );
  const kind = () => form.elements.kind.value;
  const adapt = () => {
    fields.nodes[0].hidden = kind() !== "finished";
    outcome.hidden = kind() === "transient";
  };
  for (const radio of radios)
    radio.addEventListener("change", () => {
      if (kind() !== row.status && reason.value === row.reason) reason.value = "";
      adapt();
    });
  adapt();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const body = { number: row.number, version: row.version, status: kind(), reason: reason.value };
    if (kind() === "finished") body.objective = fields.inputs.objective.value.trim();
    if (kind() !== "transient") body.constraints = readConstraints(info, fields);
    send(page, dialog, body, fields.inputs, problem);
  });
  return form;
}

function restoring(page, dialog, row) {
  const problem = el("p", { class: "error", role: "alert", hidden: true });
  const run = () => send(page, dialog, { number: row.number, version: row.version, status: "restored" }, {}, problem);
  return el("div", { class: "stack" }, problem, el("button", { type: "button", class: "primary", text: "Bring it back", onclick: run }));
}

async function send(page, dialog, body, inputs, place) {
  try {
    await post("correct", { by: page.by(), ...body });
    dialog.close();
    say(`Trial ${body.number}: ${{ deleted: "deleted", restored: "brought back" }[body.status] || "corrected"}.`);
    await page.update();
  } catch (problem) {
    explain(problem, inputs, place);
  }
}

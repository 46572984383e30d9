// Trials under way: enter the result, or press CRASHED.

import { byId, costName, el, explain, facts, field, label, lead, paramList, say, short, showErrors } from "/dom.js";
import { post } from "/api.js";
import { own } from "/space.js";

const cards = new Map();

export function renderRunning(page) {
  const rows = page.rows.filter((row) => row.status === "pending");
  const mine = (row) => page.isMine(row);
  rows.sort((a, b) => mine(b) - mine(a) || a.number - b.number);
  const there = new Set(rows.map((row) => row.number));
  for (const [number, card] of cards) {
    if (there.has(number)) continue;
    if (card.contains(document.activeElement)) byId("next-title").focus();
    card.remove();
    cards.delete(number);
  }
  const place = byId("running");
  for (const row of rows) {
    // A card is made once and left alone: nobody loses what they are typing.
    if (cards.has(row.number)) continue;
    const card = makeCard(page, row);
    card.open = mine(row) || rows.length === 1;
    cards.set(row.number, card);
    place.append(card);
  }
  byId("running-section").hidden = rows.length === 0;
  byId("running-title").textContent = rows.length > 1 ? `Under way (${rows.length})` : "Under way";
}

export function focusTrial(number) {
  const card = cards.get(number);
  if (!card) return;
  card.open = true;
  card.scrollIntoView({ block: "start" });
  lead(card.querySelector("input"));
}

function makeCard(page, row) {
  const { info } = page.state;
  const id = `trial-${row.number}`;
  const fields = outcomeFields(info, id);
  const reason = el("input", { type: "text", maxlength: 1000, autocomplete: "off" });
  fields.inputs.reason = reason;
  const problem = el("p", { class: "error", role: "alert", hidden: true });
  const send = (what, body, text) => store(page, row.number, what, body, text, fields.inputs, problem);
  const form = el(
    "form",
    { class: "stack", novalidate: true },
    el("div", { class: "fields" }, ...fields.nodes),
    el("button", { class: "primary", text: "Store result" }),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send("tell", { objective: fields.inputs.objective.value.trim(), constraints: readConstraints(info, fields) }, "stored");
  });
  const crash = () => send("crash", { reason: reason.value, constraints: readConstraints(info, fields) }, "stored as crashed");
  const partial = info.constraints.length ? "Constraint values filled in above are stored with it." : "";
  return el(
    "details",
    { class: "card running", "data-number": row.number },
    el(
      "summary",
      {},
      el("strong", { text: `Trial ${row.number}` }),
      el("span", { class: "muted", text: [row.by && `by ${row.by}`, clock(row.started)].filter(Boolean).join(", ") }),
    ),
    el(
      "div",
      { class: "stack" },
      paramList(info, row.params),
      row.expected ? facts(info, row.expected, row.success_probability) : null,
      form,
      el("hr"),
      field(`${id}-reason`, "If it crashed: what happened? (may be left empty)", reason, partial),
      el("button", { type: "button", class: "crashed", text: "CRASHED", onclick: crash, "aria-label": `Trial ${row.number} CRASHED` }),
      el("button", {
        type: "button",
        class: "quiet",
        text: "Does not count: offer it again",
        title: "For a failure that says nothing about these values, such as a lost connection",
        onclick: () => send("transient", { reason: reason.value }, "is transient, and will be offered again"),
      }),
      problem,
    ),
  );
}

const clock = (time) => (time ? `since ${new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}` : "");

// Fields for a cost and every constraint; `start` is a row to begin with.
export function outcomeFields(info, id, start = null) {
  const cost = start && start.objective !== null ? String(start.objective) : "";
  const objective = el("input", { type: "text", inputmode: "decimal", autocomplete: "off", maxlength: 40, value: cost });
  const inputs = { objective };
  const nodes = [field(`${id}-cost`, costName(info), objective)];
  const broken = new Map();
  info.constraints.forEach((one, index) => {
    const value = start ? own(start.constraints, one.name) : undefined;
    const text = typeof value === "number" ? String(value) : "";
    const input = el("input", { type: "text", inputmode: "decimal", autocomplete: "off", maxlength: 40, value: text });
    const box = el("input", { type: "checkbox", id: `${id}-broken-${index}` });
    box.checked = value === "violated";
    input.disabled = box.checked;
    box.addEventListener("change", () => {
      input.disabled = box.checked;
    });
    inputs[`constraint:${one.name}`] = input;
    broken.set(one.name, box);
    const limit = one.threshold === null ? "" : `limit ${short(one.threshold)}`;
    const node = field(`${id}-constraint-${index}`, label(info, one.name), input, limit);
    node.append(el("label", { class: "check", for: box.id }, box, "broke its limit, no value"));
    nodes.push(node);
  });
  return { inputs, nodes, broken };
}

export function readConstraints(info, fields) {
  const value = (name) => (fields.broken.get(name).checked ? "violated" : fields.inputs[`constraint:${name}`].value.trim());
  return Object.fromEntries(info.constraints.map((one) => [one.name, value(one.name)]).filter(([, text]) => text));
}

async function store(page, number, what, body, text, inputs, place) {
  place.hidden = true;
  try {
    await post(what, { number, by: page.by(), ...body });
    showErrors(inputs, {});
    say(`Trial ${number}: ${text}.`, { action: { text: what === "crash" && !body.reason ? "Add a reason" : "Change it", run: () => page.openTrial(number) } });
    lead(byId("next-title"), { from: cards.get(number) });
    cards.get(number)?.setAttribute("hidden", ""); // it goes for good with the next news
    await page.update();
  } catch (problem) {
    explain(problem, inputs, place);
    await page.update();
  }
}

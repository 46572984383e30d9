// The page: keeps the console's state and draws it anew whenever there is news.

import { byId, el, facts, paramList, short } from "/dom.js";
import { getState, listen, login } from "/api.js";
import { openOwn, renderNext } from "/next.js";
import { focusTrial, renderRunning } from "/running.js";
import { newHead, openTrial, renderTrials, setUpTrials } from "/trials.js";
import { renderConvergence, renderLimit } from "/charts.js";
import { renderMap, setUpMap } from "/map.js";

const known = new Map();
let connected = false;

const page = {
  state: null,
  rows: [],
  row: (number) => known.get(number),
  by: () => byId("by").value.trim(),
  mine: (number) => {
    const all = new Set(JSON.parse(sessionStorage.getItem("mine") || "[]"));
    sessionStorage.setItem("mine", JSON.stringify([...all.add(number)]));
  },
  isMine: (row) => JSON.parse(sessionStorage.getItem("mine") || "[]").includes(row.number) || (row.by !== "" && row.by === page.by()),
  focusTrial,
  openTrial: (number) => openTrial(page, number),
  update,
};

// --- the state -----------------------------------------------------------------------------------

let running = null;
let again = false;

// Fetches what has changed and draws it; calls during a fetch make for one more, not many.
function update() {
  if (running) {
    again = true;
    return running;
  }
  running = fetchState().finally(() => {
    running = null;
    if (again) {
      again = false;
      update();
    }
  });
  return running;
}

async function fetchState() {
  try {
    const before = page.state;
    const found = await getState(before ? before.boot : "", before ? before.revision : 0);
    if (!before || before.boot !== found.boot) known.clear();
    for (const row of found.trials) known.set(row.number, row);
    const first = !before;
    const defined = first || JSON.stringify(before.info) !== JSON.stringify(found.info);
    const changed = defined || found.trials.length > 0 || before.boot !== found.boot;
    page.state = found;
    page.rows = [...known.values()].sort((a, b) => a.number - b.number);
    render(first, defined, changed);
    live(true);
  } catch (problem) {
    if (problem.status === 0) live(false);
    else if (problem.status) banner(problem.message);
    else throw problem;
  }
}

// `defined`: the study is seen for the first time, or somebody has edited it.
function render(first, defined, changed) {
  const { info } = page.state;
  if (first) setUpTrials(page);
  if (defined) {
    document.title = `${info.study} · CrashBO`;
    byId("study").textContent = info.study;
    newHead(info);
    setUpMap(page);
  }
  renderCounts();
  renderNext(page);
  renderRunning(page);
  renderBest();
  if (changed) {
    renderTrials(page);
    renderConvergence(page);
  }
  renderLimit(page);
  renderMap(page);
  banner(page.state.trouble && `The study cannot be read: ${page.state.trouble}`);
  document.body.dataset.revision = page.state.revision;
}

function renderCounts() {
  const { counts, info } = page.state;
  const parts = [`${counts.finished || 0} finished`, `${counts.crashed || 0} crashed`, `${counts.pending || 0} under way`];
  if (counts.failed > counts.crashed) parts.push(`${counts.failed - counts.crashed} violated a limit`);
  byId("counts").textContent = `${info.direction === "maximize" ? "More is better" : "Less is better"} · ${parts.join(" · ")}`;
}

function renderBest() {
  const { best, info, best_trial: number } = page.state;
  const place = byId("best");
  const key = JSON.stringify([best, number]);
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  const parts = [];
  if (best) {
    parts.push(paramList(info, best.params), facts(info, { objective: best.objective }, best.success_probability));
    if (!best.feasible) parts.push(el("p", { class: "note", text: "No point is safe enough yet: this one is the most likely to work." }));
    parts.push(el("button", { type: "button", class: "quiet", text: "Try these values …", onclick: () => openOwn(page, best.params) }));
  } else parts.push(el("p", { class: "muted", text: "None yet: it needs a first result." }));
  if (number !== null) {
    const row = page.row(number);
    const open = el("button", { type: "button", class: "link", text: `trial ${number}`, onclick: () => openTrial(page, number) });
    parts.push(el("p", { class: "muted" }, "Best measured: ", open, row ? `, ${short(row.objective, 6)}` : ""));
  }
  place.replaceChildren(...parts);
}

// --- messages ------------------------------------------------------------------------------------

function banner(text) {
  const place = byId("banner");
  if (place.textContent !== (text || "")) place.textContent = text || "";
  place.hidden = !text;
}

function live(now) {
  if (connected === now) return;
  connected = now;
  byId("live").classList.toggle("on", now);
  byId("live-text").textContent = now ? "live" : "no connection";
  if (!now) banner("No connection to the console. What you typed is kept; it goes on by itself when the console is back.");
  else {
    banner("");
    if (page.state) update();
  }
}

// --- begin ---------------------------------------------------------------------------------------

byId("by").value = localStorage.getItem("crashbo-by") || "";
byId("by").addEventListener("input", () => localStorage.setItem("crashbo-by", byId("by").value));
for (const dialog of document.querySelectorAll("dialog"))
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.id !== "login" && dialog.close());

let width = innerWidth;
addEventListener("resize", () => {
  if (!page.state || innerWidth === width) return;
  width = innerWidth;
  renderConvergence(page);
  renderLimit(page);
});

await login();
await update();
listen(update, live);

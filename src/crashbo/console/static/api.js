// Talking to the console: the state, the news, and what is written.

import { byId, el, setError, field } from "/dom.js";

export class Refusal extends Error {
  constructor(message, status, fields) {
    super(message);
    this.status = status;
    this.fields = fields || {};
  }
}

async function request(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new Refusal("No connection to the console: nothing was stored. What you typed is still here; try again.", 0);
  }
  let data = {};
  try {
    data = await answer.json();
  } catch {
    if (answer.ok) throw new Refusal("The console's answer was cut short. Try again.", 0);
  }
  if (answer.status === 401) askToken();
  if (!answer.ok) throw new Refusal(data.error || `The console answered ${answer.status}.`, answer.status, data.fields);
  return data;
}

export function post(name, body) {
  const headers = { "content-type": "application/json", "x-crashbo": "1" };
  return request(`/api/${name}`, { method: "POST", headers, body: JSON.stringify(body) });
}

export const getState = (boot, since) => request(`/api/state?boot=${encodeURIComponent(boot)}&since=${since}`, {});

// Calls `news` at every change and `live` with whether the connection stands; rests while nobody looks.
export function listen(news, live) {
  let source = null;
  const open = () => {
    if (source) return;
    source = new EventSource("/api/events");
    source.onopen = () => live(true);
    source.onmessage = () => news();
    source.onerror = () => {
      live(false);
      if (source && source.readyState === EventSource.CLOSED) {
        source = null;
        setTimeout(open, 2000);
      }
    };
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && source) {
      source.close();
      source = null;
    } else if (!document.hidden) open();
  });
  open();
}

// --- the token ---------------------------------------------------------------------------------

// A link of the console carries its token behind #: show it once, then take it out of the address.
export async function login() {
  const found = /^#token=(.+)$/.exec(location.hash);
  if (!found) return;
  history.replaceState(null, "", location.pathname);
  try {
    await post("login", { token: decodeURIComponent(found[1]) });
  } catch (problem) {
    askToken(problem.message);
  }
}

function askToken(message = "") {
  const dialog = byId("login");
  if (dialog.open) return;
  const input = el("input", { type: "password", autocomplete: "current-password" });
  const form = el(
    "form",
    { class: "stack", novalidate: true },
    el("h2", { id: "login-title", text: "This console needs its token" }),
    el("p", { text: "It is part of the address that the console printed where it was started." }),
    field("token", "Token", input),
    el("button", { class: "primary", text: "Open" }),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await post("login", { token: input.value.trim() });
      location.reload();
    } catch (problem) {
      setError(input, problem.message);
      input.focus();
    }
  });
  dialog.replaceChildren(form);
  dialog.showModal();
  if (message) setError(input, message);
}

// Talking to the console: the state, the news, and what is written.

import { byId, el, setError, field } from "/dom.js";

export class Refusal extends Error {
  constructor(message, status, fields) {
    super(message);
    this.status = status;
    this.fields = fields || {};
  }
}

const LOST = "The console did not answer: it may have been stored, or not. What you typed is still here; press again, it is stored once.";

async function request(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new Refusal(LOST, 0);
  }
  let data = {};
  try {
    data = await answer.json();
  } catch {
    if (answer.ok) throw new Refusal(LOST, 0);
  }
  if (answer.status === 401) askToken();
  if (!answer.ok) throw new Refusal(data.error || `The console answered ${answer.status}.`, answer.status, data.fields);
  return data;
}

const ask = (name, body, headers = {}) =>
  request(`/api/${name}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-crashbo": "1", ...headers },
    body: JSON.stringify(body),
  });

const randomKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (one) => one.toString(16).padStart(2, "0")).join("");

const UNANSWERED = "crashbo-unanswered";
const keys = () => JSON.parse(sessionStorage.getItem(UNANSWERED) || "{}");
const remember = (found) => sessionStorage.setItem(UNANSWERED, JSON.stringify(found));
const underWay = new Map();

// Writes something once: a second press meanwhile waits for the first, and one after a lost answer carries the same
// key, by which the console knows what it has stored.
export function post(name, body) {
  if (name === "predict" || name === "picture" || name === "login") return ask(name, body);
  const what = JSON.stringify([name, body]);
  if (!underWay.has(what)) underWay.set(what, postOnce(name, body, what).finally(() => underWay.delete(what)));
  return underWay.get(what);
}

async function postOnce(name, body, what) {
  const known = keys();
  const key = Object.hasOwn(known, what) ? known[what] : randomKey();
  remember({ ...known, [what]: key });
  let answered = true;
  try {
    return await ask(name, body, { "idempotency-key": key });
  } catch (problem) {
    answered = problem.status !== 0 && problem.status !== 503; // the study may have been away before it answered
    throw problem;
  } finally {
    if (answered) {
      const { [what]: done, ...others } = keys();
      remember(others);
    }
  }
}

export const getState = (boot, since) => request(`/api/state?boot=${encodeURIComponent(boot)}&since=${since}`, {});

// --- the news --------------------------------------------------------------------------------------

// Browsers allow six connections to one address: of all tabs one listens to the console, and tells the others. The one
// whose name stands in the lease does, as long as it renews that; a tab that nobody looks at gives it back.
const LEASE = "crashbo-listener";
const RENEW_MS = 1000;
const STALE_MS = 4000;

// Calls `news` at every change and `live` with whether the connection stands; rests while nobody looks.
export function listen(news, live) {
  const me = randomKey();
  const others = new BroadcastChannel("crashbo");
  let source = null;

  const hear = (said) => {
    if (said === "news") news();
    else if (said === "live" || said === "lost") live(said === "live");
    else if (said === "free") setTimeout(look, 200 * Math.random());
  };
  const tell = (said) => {
    others.postMessage(said);
    hear(said);
  };
  const close = () => {
    if (source) source.close();
    source = null;
  };
  const open = () => {
    source = new EventSource("/api/events");
    source.onopen = () => tell("live");
    source.onmessage = () => tell("news");
    source.onerror = () => {
      tell("lost");
      if (source && source.readyState === EventSource.CLOSED) close();
    };
  };
  const lease = () => {
    try {
      return JSON.parse(localStorage.getItem(LEASE)) || {};
    } catch {
      return {};
    }
  };
  function look() {
    if (document.hidden) return;
    const { owner, time } = lease();
    const fresh = Math.abs(Date.now() - time) < STALE_MS;
    if (owner !== me && fresh) close();
    else {
      localStorage.setItem(LEASE, JSON.stringify({ owner: me, time: Date.now() }));
      if (!source) open();
    }
  }
  const leave = () => {
    close();
    if (lease().owner !== me) return;
    localStorage.removeItem(LEASE);
    others.postMessage("free");
  };
  others.onmessage = (event) => hear(event.data);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) leave();
    else {
      look();
      news(); // what was missed
    }
  });
  addEventListener("pagehide", leave);
  setInterval(look, RENEW_MS);
  look();
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

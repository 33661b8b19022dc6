// HTTP: JSON in and out, the token, and errors as the server says them.

import { byId } from "./dom.js";
import { parsed } from "./words.js";

const KEPT = "spaseq-token";

/** What the server answered instead: `kind`, `message`, and for a query `line`, `column`, `caret`, `hint`. */
export class Refused extends Error {
  constructor(status, error) {
    super(error.message ?? `the server answered ${status}`);
    const { kind, line, column, caret, hint } = error;
    Object.assign(this, { kind, line, column, caret, hint, status });
  }
}

/** The server cannot be reached. */
export class Unreachable extends Error {}

let asking = null;

/** Asks for the token, once for all who need it. */
function ask(wrong) {
  asking ??= new Promise((resolve) => {
    const dialog = byId("token");
    const field = byId("token-field");
    byId("token-wrong").textContent = wrong ? "That is not the token of this server." : "";
    field.value = "";
    const done = () => {
      sessionStorage.setItem(KEPT, field.value);
      asking = null;
      resolve();
    };
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    byId("token-form").addEventListener("submit", done, { once: true });
    if (!dialog.open) dialog.showModal();
  });
  return asking;
}

/** `fetch` with the token; a `Response` whose status is good, or `Refused`, or `Unreachable`. */
export async function request(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem(KEPT);
    const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    let response;
    try {
      response = await fetch(path, { cache: "no-store", ...options, headers });
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new Unreachable("the server cannot be reached");
    }
    if (response.ok) return response;
    if (response.status === 401) {
      // Another request may have asked, and been answered, in the meantime.
      if (token === sessionStorage.getItem(KEPT)) await ask(token !== null);
      continue;
    }
    throw new Refused(response.status, await reason(response));
  }
}

async function reason(response) {
  try {
    return (await response.json()).error ?? {};
  } catch {
    return { kind: "http", message: `the server answered ${response.status} ${response.statusText}` };
  }
}

async function body(response) {
  try {
    return parsed(await response.text());
  } catch {
    throw new Unreachable("the answer broke off");
  }
}

export const get = async (path, signal) => body(await request(path, { signal }));

export const getText = async (path) => (await request(path)).text();

export async function post(path, text, signal) {
  const headers = { "Content-Type": "text/plain; charset=utf-8" };
  return body(await request(path, { method: "POST", body: text, headers, signal }));
}

export const remove = (path) => request(path, { method: "DELETE" });

export const queryPath = (id) => `/queries/${encodeURIComponent(id)}`;

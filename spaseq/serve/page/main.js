// The page: what is shown, once a second from the server, and the keys.

import { Refused, Unreachable, get } from "./api.js";
import { isLost, reached, regained } from "./connection.js";
import { byId, h } from "./dom.js";
import { Editor } from "./editor.js";
import { LettersView } from "./letters.js";
import { QueryView } from "./query.js";
import { neighbour, showSide } from "./side.js";
import { nextTheme, startTheme } from "./theme.js";

const EVERY = 1000;

let queries = [];
let streams = [];
let view = null;
/** Which run of the server answers. */
let server = null;
/** Text that is to be edited next. */
let given = null;

// --- which view -------------------------------------------------------------------------------

function route() {
  const [, kind = "", id = ""] = location.hash.split("/");
  try {
    return { kind, id: decodeURIComponent(id) };
  } catch {
    return { kind, id }; // which no query has
  }
}

function go(hash) {
  if (location.hash === hash) show();
  else location.hash = hash;
}

function show() {
  const { kind, id } = route();
  view?.close();
  view = made(kind, id);
  byId("main").replaceChildren(view.element);
  scrollTo(0, 0);
  for (const link of byId("queries").querySelectorAll("a")) {
    if (kind === "query" && link.parentElement.dataset.key === id) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  for (const [link, of] of [["new-query", "new"], ["letters-link", "letters"]]) {
    if (kind === of) byId(link).setAttribute("aria-current", "page");
    else byId(link).removeAttribute("aria-current");
  }
  if (kind === "new") view.area.focus({ preventScroll: true });
  if (ticking === null) tick();
}

function made(kind, id) {
  if (kind === "new") {
    const editor = new Editor(() => streams.map((stream) => stream.iri), (made) => go(`#/query/${encodeURIComponent(made)}`), given);
    given = null;
    return editor;
  }
  if (kind === "letters") return new LettersView();
  const query = queries.find((one) => one.id === id);
  if (kind === "query" && query) {
    const edit = (text) => {
      given = text;
      go("#/new");
    };
    return new QueryView(query, () => go("#/"), edit);
  }
  return plain(kind === "query" ? id : null);
}

/** What is there without a query: a way to one. */
function plain(missing) {
  const text = missing === null ? "No query is registered yet." : "There is no such query, or not any more.";
  return {
    close() {},
    missing,
    element: h("div", { class: "view" }, h("section", { class: "card welcome" }, h("h1", {}, "spaseq"), h("p", {}, text), h("p", {}, h("a", { class: "button primary", href: "#/new" }, "Write a query")))),
  };
}

// --- once a second ----------------------------------------------------------------------------

let ticking = null;

/** Brings the page up to date; one at a time. */
function tick() {
  ticking ??= update().finally(() => (ticking = null));
  return ticking;
}

async function update() {
  if (isLost()) return;
  try {
    const [known, flowing] = await Promise.all([get("/queries"), get("/streams")]);
    queries = known.queries;
    streams = flowing.streams;
    reached();
    const { kind, id } = route();
    showSide(queries, streams, kind === "query" ? id : "");
    if (server !== null && known.run !== server) {
      server = known.run;
      show(); // another server's numbers
      return;
    }
    server = known.run;
    await one(kind, id);
  } catch (error) {
    if (error instanceof Unreachable) regained().then(tick);
    else if (!(error instanceof Refused)) throw error;
  }
}

/** The view itself. */
async function one(kind, id) {
  if (kind === "" && queries.length) {
    const first = queries.find((query) => query.matches) ?? queries[0];
    location.replace(`#/query/${encodeURIComponent(first.id)}`);
    return;
  }
  const query = queries.find((known) => known.id === id);
  if (kind === "query" && query && view.missing === id) {
    view.close();
    view = made(kind, id);
    byId("main").replaceChildren(view.element);
  }
  if (kind === "query" && !query && view instanceof QueryView) {
    view.close();
    view = plain(id);
    byId("main").replaceChildren(view.element);
  }
  await view.tick?.(query, streams);
}

async function forever() {
  for (;;) {
    await tick();
    await new Promise((resolve) => setTimeout(resolve, EVERY));
  }
}

function frame(now) {
  view?.frame?.(now);
  requestAnimationFrame(frame);
}

// --- keys -------------------------------------------------------------------------------------

const KEYS = new Map([
  ["n", () => go("#/new")],
  ["d", () => go("#/letters")],
  ["j", () => neighbour(route().id, 1)?.click()],
  ["k", () => neighbour(route().id, -1)?.click()],
  ["m", () => view?.list?.focus()],
  ["p", () => view?.list?.toggle()],
  ["t", nextTheme],
  ["?", () => byId("help").showModal()],
]);

addEventListener("keydown", (event) => {
  const writing = event.target.matches("input, textarea, select");
  if (writing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const action = KEYS.get(event.key);
  if (!action) return;
  event.preventDefault();
  action();
});

byId("help-button").addEventListener("click", () => byId("help").showModal());
byId("side-button").addEventListener("click", () => {
  byId("new-query").focus({ preventScroll: true });
  byId("side").scrollIntoView();
});
addEventListener("hashchange", show);
startTheme(() => view?.redraw?.());
show();
forever();
requestAnimationFrame(frame);

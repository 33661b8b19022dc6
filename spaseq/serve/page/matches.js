// The newest matches of a query as a list, and one of them opened.

import { Refused, queryPath, request } from "./api.js";
import { h, keyed, say } from "./dom.js";
import { drawGraph } from "./graph.js";
import { triples } from "./turtle.js";
import { between, clipped, count, jsonTerm, local, moment, parsed, plural, streamName, wholeTerm } from "./words.js";

/** So many matches are listed, each with so many of its variables, and so many events of each pattern at first. */
const ROWS = 40;
const VARIABLES = 8;
const EVENTS = 6;

/** So many characters of a value are shown in the list, so many of an event's Turtle, so many triples are drawn. */
const VALUE = 60;
const TURTLE = 100000;
const TRIPLES = 300;

/** What a match says in one line: of its first row, or who it is of. */
function gist(match) {
  const row = match.bindings?.[0] ?? {};
  const pairs = row instanceof Map ? [...row] : Object.entries(row);
  const more = pairs.length - VARIABLES;
  return [
    ...pairs.slice(0, VARIABLES).map(([name, value]) => h("span", { class: "pair" }, h("i", {}, name), ` ${clipped(jsonTerm(value), VALUE)}`)),
    more > 0 ? h("i", {}, `${count(more)} more`) : null,
  ];
}

export class MatchList {
  constructor(kept, open) {
    this.kept = kept;
    this.open = open;
    this.paused = false;
    this.over = false;
    this.body = h("tbody");
    this.hold = h("button", { type: "button", class: "button small", "aria-pressed": "false", title: "Pause (p)", onclick: () => this.toggle() }, "Pause");
    this.said = h("p", { class: "quiet" });
    this.older = h("p", { class: "quiet" });
    this.table = h(
      "table",
      { class: "matches", "aria-label": "Newest matches" },
      h("thead", {}, h("tr", {}, ["#", "End", "Span", "First row"].map((text) => h("th", { scope: "col" }, text)))),
      this.body,
    );
    const scroll = h("div", { class: "scroll" }, this.table);
    scroll.addEventListener("pointerenter", () => (this.over = true));
    scroll.addEventListener("pointerleave", () => (this.over = false));
    this.element = h("section", { class: "card", "aria-label": "Matches" }, h("div", { class: "row" }, h("h2", {}, "Matches"), this.said, this.hold), scroll, this.older);
    this.shownUpTo = -1;
  }

  toggle() {
    this.paused = !this.paused;
    this.hold.setAttribute("aria-pressed", String(this.paused));
    say(this.hold, this.paused ? "Go on" : "Pause");
    this.shownUpTo = -1;
  }

  /** Rows do not move under a pointer, nor under the keyboard. */
  get isHeld() {
    return this.paused || this.over || this.body.contains(document.activeElement);
  }

  draw() {
    const { received } = this.kept;
    const held = this.isHeld && this.body.children.length > 0;
    if (!held) this.upTo = received;
    const waiting = received - this.upTo;
    say(this.said, waiting ? `Held: ${plural(waiting, "newer match")} to come` : "");
    this.table.dataset.received = received;
    if (held || received === this.shownUpTo) return;
    this.shownUpTo = received;
    keyed(this.body, this.kept.newest(ROWS), (kept) => kept.number, (kept) => this.row(kept), () => {});
    const older = Number(this.body.lastElementChild?.dataset.key ?? 1) - 1;
    say(this.older, older ? `and ${plural(older, "older match")}` : "");
  }

  row({ number, text, match = parsed(text) }) {
    const button = h("button", { type: "button", class: "link", "aria-label": `Open match ${number}` }, count(number));
    const row = h(
      "tr",
      { onclick: () => this.open(number) },
      h("td", {}, button),
      h("td", {}, h("time", { title: moment(match.end) }, moment(match.end))),
      h("td", { class: "number" }, between(match.start, match.end)),
      h("td", { class: "gist" }, gist(match)),
    );
    return row;
  }

  focus() {
    this.body.querySelector("button")?.focus();
  }
}

/** One match with its events, from the server's history; `Refused` if it is no longer kept. */
async function fetched(id, number) {
  const aborting = new AbortController();
  const path = `${queryPath(id)}/matches?since=${number - 1}&follow=0&events=1&format=ndjson`;
  const response = await request(path, { headers: { Accept: "application/x-ndjson" }, signal: aborting.signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      text += value ?? "";
      if (!done && !value.includes("\n")) continue; // a long match comes in many parts
      const lines = text.split("\n");
      const rest = lines.pop();
      for (const line of done ? [...lines, rest] : lines) {
        const match = line.trim() ? parsed(line) : {};
        if (match.number === number) return match;
        if (match.number > number) done || aborting.abort();
      }
      if (done) break;
      text = rest;
    }
  } finally {
    aborting.abort();
  }
  throw new Refused(404, { kind: "not-found", message: `the server no longer keeps match ${number}` });
}

export class MatchDetail {
  constructor(id, closed) {
    this.id = id;
    this.closed = closed;
    this.number = 0;
    this.element = h("section", { class: "card detail", "aria-label": "Opened match", tabindex: -1, hidden: true });
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
  }

  close() {
    if (this.element.hidden) return;
    this.element.hidden = true;
    this.element.replaceChildren();
    this.closed(this.number);
  }

  async open(number) {
    this.number = number;
    const shut = h("button", { type: "button", class: "icon", "aria-label": "Close the match", title: "Close (Esc)", onclick: () => this.close() }, "×");
    const place = h("div", { class: "opened" }, h("p", { class: "quiet" }, "Fetching its events…"));
    this.element.replaceChildren(h("div", { class: "row" }, h("h2", {}, `Match ${count(number)}`), shut), place);
    this.element.hidden = false;
    this.element.focus({ preventScroll: true });
    this.element.scrollIntoView({ block: "start" });
    try {
      const match = await fetched(this.id, number);
      if (this.number === number) place.replaceChildren(...matchParts(match));
    } catch (error) {
      if (this.number === number) place.replaceChildren(h("p", { class: "bad", role: "alert" }, error.message));
    }
  }
}

/** A match in full: when, of whom, its rows, and the events of each pattern. */
export function matchParts(match) {
  const partition = Object.entries(match.partition ?? {});
  const facts = h(
    "dl",
    { class: "facts" },
    fact("From", moment(match.start)),
    fact("To", moment(match.end)),
    fact("Span", between(match.start, match.end)),
    partition.map(([name, value]) => fact(`?${name}`, jsonTerm(value), wholeTerm(value))),
  );
  return [facts, rows(match.bindings ?? []), ...Object.entries(match.events ?? {}).map(([gpm, events]) => pattern(gpm, events, match))];
}

const fact = (name, value, title) => h("div", {}, h("dt", {}, name), h("dd", { title }, value));

/** The first rows as a table. */
export function rows(bindings) {
  const names = [...new Set(bindings.flatMap((row) => Object.keys(row)))];
  if (!names.length) return h("p", { class: "quiet" }, "No row.");
  const shown = bindings.slice(0, 20);
  const cell = (name, value) => h("td", { title: wholeTerm(value), "data-name": `?${name}` }, jsonTerm(value));
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { "aria-label": "Rows of the match" },
      h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, `?${name}`)))),
      h("tbody", {}, shown.map((row) => h("tr", {}, names.map((name) => (Object.hasOwn(row, name) ? cell(name, row[name]) : h("td")))))),
    ),
    bindings.length > shown.length ? h("p", { class: "quiet" }, `and ${plural(bindings.length - shown.length, "more row")}`) : null,
  );
}

function pattern(gpm, events, match) {
  const box = h("div", { class: "events" });
  const more = h("button", { type: "button", class: "button small" });
  let shown = 0;
  const show = () => {
    for (const event of events.slice(shown, shown + EVENTS)) box.append(card(gpm, event, match));
    shown += EVENTS;
    if (shown < events.length) say(more, plural(events.length - shown, "more event"));
    else more.remove();
  };
  more.addEventListener("click", show);
  const section = h("section", { class: "pattern" }, h("h3", {}, h("span", { class: "gpm" }, gpm), ` ${plural(events.length, "event")}`), box, more);
  show();
  return section;
}

/** The graph of an event; null if it is too large, and then there is the text. */
function drawn(event) {
  if (event.turtle.length > TURTLE) return null;
  try {
    const found = triples(event.turtle);
    return found.length > TRIPLES ? null : drawGraph(found, `Graph of the event at ${moment(event.time)}`);
  } catch {
    return null;
  }
}

/** An event: its graph drawn, and the same as Turtle. */
function card(gpm, event, match) {
  const drawing = drawn(event);
  const turtle = h("pre", { class: "turtle", tabindex: 0, hidden: drawing !== null }, clipped(event.turtle, TURTLE));
  const graph = h("div", { class: "drawn", tabindex: 0, role: "group", "aria-label": "Drawn graph" }, drawing);
  graph.hidden = drawing === null;
  const swap = h("button", { type: "button", class: "button small", "aria-pressed": "false" }, "Turtle");
  swap.addEventListener("click", () => {
    turtle.hidden = !turtle.hidden;
    graph.hidden = !turtle.hidden;
    swap.setAttribute("aria-pressed", String(!turtle.hidden));
  });
  return h(
    "article",
    { class: "event", "aria-label": `Event of ${gpm}` },
    h(
      "header",
      { class: "row" },
      h("span", {}, h("time", {}, moment(event.time, typeof match.start === "string" ? match.start : null)), " ", h("span", { class: "quiet", title: event.stream }, streamName(event.stream)), event.graph ? h("span", { class: "quiet", title: event.graph }, ` ${local(event.graph)}`) : null),
      drawing === null ? null : swap,
    ),
    graph,
    turtle,
  );
}

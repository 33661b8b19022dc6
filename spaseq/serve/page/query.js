// One query: its numbers, its automaton, its matches over time, its text.

import { Refused, Unreachable, get, getText, queryPath, remove } from "./api.js";
import { Automaton, shapeOf } from "./automaton.js";
import { announce, h, keyed, once, say } from "./dom.js";
import { Follower } from "./follow.js";
import { highlighted } from "./highlight.js";
import { Kept } from "./kept.js";
import { MatchDetail, MatchList } from "./matches.js";
import { measuredOf, queryName, showCount } from "./side.js";
import { drawSpark, sparkline } from "./spark.js";
import { Timeline } from "./timeline.js";
import { count, duration, isTick, moment, parsed, plural, rate } from "./words.js";

/** So many milliseconds at least between two drawings of the timeline, and of the list, which is to be read. */
const DRAW = 120;
const LIST = 600;

/** So many matches before the newest are asked for at first. */
const BACK = 400;

export class QueryView {
  /** `gone()` is called when the query was deleted. */
  constructor(query, gone, edit) {
    this.query = query;
    this.gone = gone;
    this.kept = new Kept();
    this.timeline = new Timeline(this.kept, (number) => this.open(number));
    this.list = new MatchList(this.kept, (number) => this.open(number));
    this.detail = new MatchDetail(query.id, () => this.list.focus());
    this.status = h("span", { class: "pill" });
    this.tiles = h("dl", { class: "tiles" });
    this.spark = sparkline("Matches per second, the last minutes");
    this.notice = h("p", { class: "notice", role: "status", hidden: true });
    this.drawing = h("div", { class: "automaton-box" });
    this.reason = h("pre", { class: "turtle", tabindex: 0, hidden: true });
    this.sample = h("p", { class: "quiet" });
    this.patterns = h("ul", { class: "patterns", "aria-label": "Patterns" });
    this.drawnAt = this.listedAt = -LIST;
    this.countNext = 0;
    this.seen = {};
    this.latest = 0;
    this.element = h(
      "div",
      { class: "view" },
      h(
        "header",
        { class: "row title" },
        h("div", {}, h("h1", {}, queryName(query), " ", this.status), h("p", { class: "quiet" }, comment(query.text))),
        h(
          "span",
          { class: "buttons" },
          h("button", { type: "button", class: "button", onclick: () => edit(query.text) }, "Copy to editor"),
          h("button", { type: "button", class: "button danger", onclick: (event) => this.delete(event.target) }, "Delete"),
        ),
      ),
      this.notice,
      h("section", { class: "card numbers-card", "aria-label": "Numbers" }, this.tiles, this.spark),
      h(
        "div",
        { class: "columns" },
        h("section", { class: "card", "aria-label": "Automaton" }, h("div", { class: "row" }, h("h2", {}, "Automaton"), this.sample), this.drawing, this.patterns),
        h(
          "section",
          { class: "card text-card", "aria-label": "Query text" },
          h("div", { class: "row" }, h("h2", {}, "Query"), h("button", { type: "button", class: "button small", onclick: (event) => once(event.target, () => this.why()) }, "Why?")),
          this.reason,
          h("pre", { class: "query-text", tabindex: 0 }, highlighted(query.text.trimEnd())),
        ),
      ),
      this.timeline.element,
      this.list.element,
      this.detail.element,
    );
    this.show(query);
    this.follower = new Follower(query.id, this, Math.max(0, (query.matches ?? 0) - BACK));
  }

  close() {
    this.follower.stop();
    this.timeline.close();
    this.isClosed = true;
  }

  // --- what comes -----------------------------------------------------------------------------

  match(number, data) {
    this.latest = number;
    this.kept.add(number, data);
  }

  restarted() {
    this.latest = 0;
    this.kept.clear();
  }

  /** Something to say beside the matches. */
  told(text) {
    say(this.notice, text);
    this.notice.hidden = !text;
  }

  // --- drawing --------------------------------------------------------------------------------

  frame(now) {
    if (!this.kept.changed && this.list.shownUpTo === this.kept.received) return;
    if (now - this.drawnAt < DRAW) return;
    this.drawnAt = now;
    if (this.kept.changed) this.timeline.draw();
    this.kept.changed = false;
    if (now - this.listedAt < LIST) return;
    this.listedAt = now;
    this.list.draw();
    this.numbers();
  }

  redraw() {
    this.kept.changed = true;
  }

  open(number) {
    this.timeline.chosen = number;
    this.kept.changed = true;
    this.detail.open(number);
  }

  show(query) {
    const grown = query.matches - this.query.matches;
    this.query = query;
    const state = query.error ? "failed" : query.done ? "done" : "running";
    this.status.dataset.state = state;
    say(this.status, state);
    if (query.error) this.told(query.error.message ?? String(query.error));
    if (grown > 0) announce(`${plural(grown, "new match")} of ${queryName(query)}`);
    const known = measuredOf("query", query.id);
    this.timeline.rate = known?.now ?? 0;
    if (known) drawSpark(this.spark, known.series);
    this.numbers();
  }

  /** Once a second: its counts and its automaton. */
  async tick(query, streams) {
    this.show(query);
    const path = queryPath(query.id);
    const stats = await get(`${path}/stats`);
    if (this.isClosed) return;
    const reached = streams.filter((stream) => query.streams.includes(stream.iri)).map((stream) => stream.watermark ?? null);
    this.reached = !reached.length || reached.includes(null) ? null : reached.reduce((first, time) => (time < first ? time : first));
    this.seen = stats;
    this.numbers();
    // Not waited for: what else the page says is not to be late by it.
    this.counting ??= this.counted(path).catch(quiet).finally(() => (this.counting = null));
  }

  /** The automaton with its counts: the server works for these, so they are asked for the less the longer it does. */
  async counted(path) {
    const begun = performance.now();
    if (begun < this.countNext) return;
    const automaton = await get(`${path}/explain?format=json`);
    this.countNext = performance.now() + Math.max(1500, 12 * (performance.now() - begun));
    if (this.isClosed) return;
    const room = this.drawing.clientWidth;
    if (this.automaton?.shape === shapeOf(automaton) && this.automaton.room === room) this.automaton.show(automaton);
    else {
      this.automaton = new Automaton(automaton, room);
      this.drawing.replaceChildren(this.automaton.svg);
    }
    const { events } = automaton.counted ?? {};
    say(this.sample, events === undefined ? "" : `Counted over the newest ${plural(events, "event")}; × is how often an edge was taken`);
  }

  /** The numbers. How many matches there are is one number, here and in the list of queries. */
  numbers() {
    const stats = this.seen;
    const matches = Math.max(this.query.matches, this.latest);
    showCount(this.query.id, matches);
    const tiles = [
      ["Matches", count(matches)],
      ["Matches/s", rate(measuredOf("query", this.query.id)?.now)],
      ["Events", count(stats.events)],
      ["Relevant", stats.events ? `${((100 * stats.relevant) / stats.events).toFixed(0)} %` : "–"],
      ["Late", count(stats.late)],
      ["Complete up to", `${moment(this.reached)}${this.reached && !isTick(this.reached) ? " UTC" : ""}`],
      ...shed(stats.shed),
    ];
    keyed(
      this.tiles,
      tiles,
      ([name]) => name,
      ([name]) => h("div", {}, h("dt", {}, name), h("dd")),
      (item, [, value]) => say(item.lastElementChild, value),
    );
    keyed(
      this.patterns,
      Object.entries(stats.gpms ?? {}),
      ([name]) => name,
      ([name]) => h("li", {}, h("span", { class: "gpm" }, name), h("meter", { min: 0, max: 1, "aria-label": `Share of events that match ${name}` }), h("span", { class: "quiet" })),
      (item, [, { events, matched }]) => {
        item.children[1].value = events ? matched / events : 0;
        say(item.children[2], `matches ${plural(matched, "event")}`);
      },
    );
  }

  async why() {
    this.reason.hidden = false;
    say(this.reason, "Looking…");
    try {
      const text = await getText(`${queryPath(this.query.id)}/why`);
      say(this.reason, why(text));
    } catch (error) {
      say(this.reason, error.message);
    }
  }

  /** Asks once more, in the button itself. */
  async delete(button) {
    if (button.dataset.sure !== "true") {
      button.dataset.sure = "true";
      say(button, "Really delete?");
      button.addEventListener("blur", () => { button.dataset.sure = ""; say(button, "Delete"); }, { once: true });
      return;
    }
    try {
      await remove(queryPath(this.query.id));
      announce("The query is deleted.", true);
      this.gone();
    } catch (error) {
      this.told(error.message);
    }
  }
}

/** That the server is away or refuses, the next tick says. */
function quiet(error) {
  if (!(error instanceof Unreachable || error instanceof Refused)) throw error;
}

/** What a bound cost, if there is one. */
function shed(given) {
  if (!given) return [];
  const recall = given.recall === null || given.recall === undefined ? "–" : `${(100 * given.recall).toFixed(0)} %`;
  return [
    [given.active ? "Shedding" : "Shed", count(given.partial_matches)],
    ["Recall, estimated", recall],
    ["Latency", given.latency === null ? "–" : duration(given.latency)],
  ];
}

/** The answer to why, which may be text or JSON. */
function why(text) {
  try {
    const answer = parsed(text);
    return answer.text ?? answer.cause ?? text;
  } catch {
    return text;
  }
}

/** The comment that a query begins with says best what it is for. */
function comment(text) {
  const lines = [];
  for (const line of text.split("\n")) {
    if (!line.startsWith("#")) break;
    lines.push(line.replace(/^#+\s?/, ""));
  }
  return lines.join(" ");
}

// Dead letters: events that could not be taken, and why.

import { get } from "./api.js";
import { h, keyed, say } from "./dom.js";
import { count, moment, plural, streamName } from "./words.js";

const MOST = 100;

export class LettersView {
  constructor() {
    this.said = h("p", { class: "quiet" }, "Bad and late events are left out of the queries, and kept here with the reason.");
    this.list = h("ol", { class: "letters" });
    this.element = h("div", { class: "view" }, h("section", { class: "card", "aria-label": "Dead letters" }, h("h1", {}, "Dead letters"), this.said, this.list));
  }

  close() {}

  async tick() {
    const { count: all, letters } = await get(`/letters?limit=${MOST}`);
    say(this.said, letters.length ? `${all > letters.length ? `The newest ${count(letters.length)} of ` : ""}${plural(all, "letter")}, the newest first.` : "None: every event so far could be taken.");
    keyed(this.list, letters, (letter) => letter.number, entry, () => {});
  }
}

function entry(letter) {
  const payload = letter.payload ?? "";
  return h(
    "li",
    {},
    h("p", {}, h("b", {}, letter.reason)),
    h("p", { class: "quiet", title: letter.stream }, `${streamName(letter.stream)}, ${letter.position}, refused ${moment(letter.at)}`),
    payload ? h("details", {}, h("summary", {}, `Payload, ${count(payload.length)} characters`), h("pre", { class: "turtle", tabindex: 0 }, payload)) : null,
  );
}

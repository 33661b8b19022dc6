// What a query would have found in the last events.

import { h } from "./dom.js";
import { matchParts, rows } from "./matches.js";
import { between, count, moment, plural, streamName } from "./words.js";

export function trialResult(trial) {
  const found = trial.matches.length;
  const over = trial.streams.map((stream) => `${count(stream.events)} of ${streamName(stream.iri)}`).join(", ");
  const said = found ? `${trial.more ? "The first " : ""}${plural(found, "match")}` : "No match";
  return [
    h("h2", {}, `${said} in the last ${plural(trial.events, "event")}`),
    h("p", { class: "quiet" }, over ? `Looked at ${over}.` : "No event of its streams is kept yet."),
    trial.stopped ? h("p", { class: "bad" }, trial.stopped) : null,
    trial.why ? h("p", { class: "why" }, h("b", {}, "Why: "), trial.why) : null,
    found ? h("section", { class: "card" }, h("h3", {}, "First rows"), rows(trial.matches.flatMap((match) => match.bindings ?? []))) : null,
    ...trial.matches.map(tried),
  ].filter((part) => part !== null);
}

function tried(match, number) {
  const opened = h("details", { class: "card" }, h("summary", {}, `Match ${number + 1}: ${moment(match.end)}, span ${between(match.start, match.end)}`));
  opened.addEventListener("toggle", () => {
    if (opened.open && opened.children.length === 1) opened.append(h("div", { class: "opened" }, matchParts(match)));
  });
  return opened;
}

// Writing a query: checked as it is typed, tried over the last events, registered.

import { Refused, post } from "./api.js";
import { announce, h, once, say } from "./dom.js";
import { highlighted } from "./highlight.js";
import { trialResult } from "./trial.js";
import { streamName } from "./words.js";

/** So many milliseconds without a key before the text is checked. */
const QUIET = 300;
const DRAFT = "spaseq-draft";

const starter = (stream) => `PREFIX : <http://example.org/>

SELECT *
WITHIN 5 MINUTES SLIDING
FROM STREAM S <${stream ?? "http://example.org/stream"}>
WHERE {
  SEQ(A ; B)
  DEFINE GPM A ON S { ?x ?p ?before }
  DEFINE GPM B ON S { ?x ?p ?after . FILTER(?after > ?before) }
}
LIMIT 100
`;

/** The word of a line that begins at a column; empty at its end. */
function wordAt(line, column) {
  let at = [...line.textContent].slice(0, column).join("").length;
  const found = document.createRange();
  found.selectNodeContents(line);
  found.collapse(false);
  const texts = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  for (let text; (text = texts.nextNode()); at -= text.length) {
    if (at >= text.length) continue;
    found.setStart(text, at);
    found.setEnd(text, at + /^(?:[?$]?[\w:.-]+|.)/s.exec(text.data.slice(at))[0].length);
    break;
  }
  return found;
}

export class Editor {
  /** `streams()` are the IRIs of streams there are; `registered(id)` is called when a query was. */
  constructor(streams, registered, given) {
    this.registered = registered;
    this.area = h("textarea", {
      id: "text", spellcheck: "false", autocapitalize: "off", autocomplete: "off",
      "aria-label": "Query", "aria-describedby": "verdict",
      oninput: () => this.typed(), onkeydown: (event) => this.key(event),
    });
    this.mirror = h("pre", { class: "mirror", "aria-hidden": "true" });
    this.verdict = h("p", { id: "verdict", class: "verdict", role: "status", "aria-live": "polite" });
    this.name = h("input", { id: "name", autocomplete: "off", placeholder: "optional", maxlength: 200 });
    this.register = h("button", { type: "submit", class: "button primary", title: "Ctrl+Enter" }, "Register");
    this.attempt = h("button", { type: "button", class: "button", onclick: () => once(this.attempt, () => this.try()) }, "Try it");
    this.result = h("section", { class: "trial", "aria-label": "Trial", hidden: true });
    const form = h(
      "form",
      { class: "card editor-card", onsubmit: (event) => { event.preventDefault(); this.submit(); } },
      h("div", { class: "row" }, h("h1", {}, "New query"), h("label", { class: "inline", for: "name" }, "Name ", this.name)),
      h("div", { class: "editor" }, h("div", { class: "paper" }, this.mirror, this.area)),
      this.verdict,
      h("div", { class: "row" }, h("span", { class: "quiet" }, "Try it runs the query over the last events that the server keeps; nothing is registered."), h("span", { class: "buttons" }, this.attempt, this.register)),
    );
    const known = streams();
    const insert = (iri) => h("button", { type: "button", class: "chip", title: `Insert <${iri}>`, onclick: () => this.insert(`<${iri}>`) }, streamName(iri));
    const hints = known.length ? h("p", { class: "chips" }, h("span", { class: "quiet" }, "Insert a stream: "), known.map(insert)) : null;
    this.element = h("div", { class: "view" }, form, hints, this.result);
    this.set(given ?? sessionStorage.getItem(DRAFT) ?? starter(known[0]));
  }

  close() {
    clearTimeout(this.timer);
    this.checking?.abort();
  }

  set(text) {
    this.area.value = text;
    this.typed();
  }

  insert(text) {
    this.area.focus();
    this.area.setRangeText(text, this.area.selectionStart, this.area.selectionEnd, "end");
    this.typed();
  }

  typed() {
    const text = this.area.value;
    sessionStorage.setItem(DRAFT, text);
    this.unmark();
    clearTimeout(this.timer);
    this.checking?.abort();
    this.timer = setTimeout(() => this.check(), QUIET);
  }

  key(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.submit();
    }
  }

  submit() {
    return once(this.register, () => this.send());
  }

  async check() {
    const aborting = (this.checking = new AbortController());
    const text = this.area.value;
    if (!text.trim()) {
      this.judge("", "Write a query.");
      return;
    }
    try {
      const found = await post("/queries?dry=1", text, aborting.signal);
      const streams = (found.streams ?? []).map(streamName).join(", ");
      const variables = (found.variables ?? []).map((name) => `?${name.replace(/^\?/, "")}`).join(" ");
      this.judge("good", `Valid: ${found.form} ${variables}${streams ? ` over ${streams}` : ""}`);
    } catch (error) {
      if (!aborting.signal.aborted) this.fail(error);
    }
  }

  judge(kind, text) {
    this.verdict.dataset.kind = kind;
    say(this.verdict, text);
  }

  /** An error where it is: its word marked, the message under the line, and the same for who listens. */
  fail(error) {
    this.unmark();
    const where = error.line ? `line ${error.line}, column ${error.column ?? 1}: ` : "";
    this.judge("bad", `${where}${error.message}${error.hint ? ` (${error.hint})` : ""}`);
    const line = this.mirror.children[error.line - 1];
    if (!(error instanceof Refused) || !line) return;
    const mark = h("span", { class: "mark" });
    wordAt(line, (error.column ?? 1) - 1).surroundContents(mark);
    const bubble = h("div", { class: "bubble" }, h("b", {}, error.message), error.hint ? h("span", {}, ` ${error.hint}`) : null);
    line.append(bubble);
    bubble.style.left = `${Math.max(0, Math.min(mark.offsetLeft, line.clientWidth - bubble.offsetWidth))}px`;
    this.area.setAttribute("aria-invalid", "true");
  }

  unmark() {
    this.mirror.replaceChildren(...highlighted(this.area.value));
    this.area.removeAttribute("aria-invalid");
  }

  async send() {
    clearTimeout(this.timer);
    this.checking?.abort();
    const name = this.name.value.trim();
    try {
      const query = await post(`/queries${name ? `?name=${encodeURIComponent(name)}` : ""}`, this.area.value);
      sessionStorage.removeItem(DRAFT);
      announce("The query is registered.", true);
      this.registered(query.id);
    } catch (error) {
      this.fail(error);
      this.mirror.querySelector(".bubble")?.scrollIntoView({ block: "nearest" });
    }
  }

  async try() {
    this.result.hidden = false;
    this.result.replaceChildren(h("p", { class: "quiet" }, "Running it over the last events…"));
    try {
      this.result.replaceChildren(...trialResult(await post("/queries/try", this.area.value)));
      this.result.scrollIntoView({ block: "nearest" });
    } catch (error) {
      this.result.hidden = true;
      this.fail(error);
    }
  }
}

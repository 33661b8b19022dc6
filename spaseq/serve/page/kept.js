// What the page keeps of the matches of one query: bounded, however many come.

import { instant } from "./words.js";

/** So many matches are on the timeline, and the newest so many can be opened. */
export const SPANS = 20000;
export const TEXTS = 400;

const START = /"start":\s*("[^"]*"|-?\d+)/;
const END = /"end":\s*("[^"]*"|-?\d+)/;

const time = (found) => (found === null ? NaN : instant(found[1][0] === '"' ? found[1].slice(1, -1) : Number(found[1])));

export class Kept {
  constructor() {
    this.clear();
  }

  clear() {
    this.received = 0;
    this.start = new Float64Array(SPANS);
    this.end = new Float64Array(SPANS);
    this.number = new Float64Array(SPANS);
    this.texts = [];
    this.ticks = false;
    this.changed = true;
  }

  /** One match, as the server wrote it: most are never looked at, so it is not even parsed here. */
  add(number, text) {
    const place = this.received++ % SPANS;
    const end = END.exec(text);
    this.start[place] = time(START.exec(text));
    this.end[place] = time(end);
    this.ticks = end !== null && end[1][0] !== '"';
    this.number[place] = number;
    this.texts.push({ number, text });
    if (this.texts.length >= 2 * TEXTS) this.texts.splice(0, this.texts.length - TEXTS);
    this.changed = true;
  }

  get size() {
    return Math.min(this.received, SPANS);
  }

  /** The place of the match that came so many before the newest. */
  place(ago) {
    return (this.received - 1 - ago) % SPANS;
  }

  newest(count) {
    return this.texts.slice(-count).reverse();
  }
}

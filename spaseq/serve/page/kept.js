// What the page keeps of the matches of one query: bounded, however many come.

import { parsed } from "./words.js";

/** So many matches are on the timeline, and the newest so many can be opened. */
export const SPANS = 20000;
export const TEXTS = 400;

/** Of a match whose text has more characters, only what its line in the list says is kept. */
const LONG = 20000;

const START = /"start":\s*("[^"]*"|-?\d+)/;
const END = /"end":\s*("[^"]*"|-?\d+)/;

/** Of a long match its times and its first row. */
function line(text) {
  const { start, end, bindings } = parsed(text);
  const row = Object.entries(bindings?.[0] ?? {}).slice(0, 20);
  return { start, end, bindings: [new Map(row.map(([name, value]) => [name, { ...value, value: value.value.slice(0, LONG / 20) }]))] };
}

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
    /** The first tick, from which the others are counted: so they are exact where they are large. */
    this.zero = null;
    this.changed = true;
  }

  /** One match, as the server wrote it: most are never looked at, so it is not even parsed here. */
  add(number, text) {
    const place = this.received++ % SPANS;
    this.start[place] = this.time(START.exec(text));
    this.end[place] = this.time(END.exec(text));
    this.number[place] = number;
    this.texts.push(text.length > LONG ? { number, match: line(text) } : { number, text });
    if (this.texts.length >= 2 * TEXTS) this.texts.splice(0, this.texts.length - TEXTS);
    this.changed = true;
  }

  /** A time as a number: milliseconds since the epoch, or ticks since the first. */
  time(found) {
    if (found === null) return NaN;
    if (found[1][0] === '"') return Date.parse(found[1].slice(1, -1));
    const tick = BigInt(found[1]);
    this.zero ??= tick;
    return Number(tick - this.zero);
  }

  get ticks() {
    return this.zero !== null;
  }

  /** The tick of such a number. */
  tick(value) {
    return this.zero + BigInt(Math.round(value));
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

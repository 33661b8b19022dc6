// The matches of a query as they come: an event stream read by fetch, resumed by number.

import { Refused, queryPath, request } from "./api.js";
import { isLost, regained } from "./connection.js";

/** So many milliseconds of a frame are for reading matches; then the page may draw. */
const SHARE = 6;

const frame = () => new Promise((resolve) => (document.hidden ? setTimeout(resolve, 50) : requestAnimationFrame(resolve)));

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** The fields of one block of an event stream. */
function fields(block) {
  const found = { event: "message", data: "", id: undefined };
  for (const line of block.split("\n")) {
    if (line.startsWith("data:")) found.data += (found.data && "\n") + line.slice(line[5] === " " ? 6 : 5);
    else if (line.startsWith("id:")) found.id = line.slice(3).trim();
    else if (line.startsWith("event:")) found.event = line.slice(6).trim();
  }
  return found;
}

export class Follower {
  /**
   * `target.match(number, data)` gets every match once, in order, its data as text; `target.told(text)` what
   * the server says beside; `target.restarted()` that numbers begin again.
   */
  constructor(id, target, since = 0) {
    this.id = id;
    this.target = target;
    this.last = since;
    this.stopped = false;
    this.run();
  }

  stop() {
    this.stopped = true;
    this.aborting?.abort();
  }

  async run() {
    let failures = 0;
    while (!this.stopped) {
      const before = this.last;
      try {
        if (await this.read()) return;
        // The stream ended: the reader was too slow, or the server is about to go.
        failures = this.last > before ? 0 : failures + 1;
      } catch (error) {
        if (this.stopped) return;
        if (error instanceof Refused) {
          if (error.status === 404) {
            this.target.told("This query is gone.");
            return;
          }
          if (error.kind === "parameter" && this.last) this.restart();
          else this.target.told(error.message);
        }
        failures = this.last > before ? 0 : failures + 1;
        if (!(error instanceof Refused) && failures > 1) await regained();
      }
      await pause(Math.min(8000, 250 * 2 ** failures));
      if (isLost()) await regained();
    }
  }

  /** The numbers are those of another server, which began anew: so does the page. */
  restart() {
    this.last = 0;
    this.target.restarted();
  }

  /** Reads until the stream ends; whether that is for good. */
  async read() {
    this.aborting = new AbortController();
    const { signal } = this.aborting;
    const headers = { Accept: "text/event-stream", ...(this.last ? { "Last-Event-ID": String(this.last) } : {}) };
    const response = await request(`${queryPath(this.id)}/matches?since=${this.last}&format=sse`, { headers, signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let last = "";
    let begun = performance.now();
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return false;
        const ends = (last + value).includes("\n\n");
        last = value.slice(-1);
        rest += value;
        if (!ends) continue; // a long match comes in many parts, which are looked at once
        const blocks = rest.split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) {
          if (this.stopped) return true;
          if (this.take(fields(block))) return true;
          if (performance.now() - begun > SHARE) {
            await frame();
            begun = performance.now();
          }
        }
      }
    } finally {
      reader.cancel().catch(() => {});
    }
  }

  take({ event, data, id }) {
    if (!data) return false; // a comment that keeps the connection alive
    if (event === "message" || event === "match") {
      const number = Number(id);
      if (number > this.last) {
        this.last = number;
        this.target.match(number, data);
      }
      return false;
    }
    const value = JSON.parse(data);
    if (event === "lost") this.last = Math.max(this.last, value.to);
    this.target.told(told(event, value));
    return event === "end" && value.reason !== "stopped"; // else the server goes, and may come back
  }
}

const REASONS = new Map([
  ["done", "The query is done: it finds no more."],
  ["deleted", "The query was deleted."],
  ["stopped", ""],
]);

/** What the server says beside matches, in words. */
function told(event, value) {
  if (event === "lost") return `Matches ${value.from} to ${value.to} are not shown: the server no longer keeps them.`;
  if (event === "dropped") return `This page was too slow, and goes on after match ${value.since}.`;
  if (event !== "end") return value.message ?? value.reason ?? "";
  return REASONS.get(value.reason) ?? value.error?.message ?? `The query ended: ${value.reason}.`;
}

// Matches over time on a canvas: a bar from the first event to the last while they are few, else how many end per pixel.

import { h, say } from "./dom.js";
import { SPANS } from "./kept.js";
import { count, moment, plural } from "./words.js";

const HEIGHT = 132;
const AXIS = 20;
const LANE = 9;
const FEW = 160;
const CHOICES = [["Auto", 0], ["Last 50", 50], ["Last 500", 500], ["All kept", SPANS]];

/** So many matches a second are too many for bars. */
const FAST = 100;

export class Timeline {
  /** `open(number)` is called with the match that was chosen. */
  constructor(kept, open) {
    this.kept = kept;
    this.open = open;
    this.many = 0;
    this.rate = 0;
    this.chosen = 0;
    this.boxes = [];
    this.drawn = 0;
    this.canvas = h("canvas", { class: "timeline", tabindex: 0, role: "img", onclick: (event) => this.click(event), onkeydown: (event) => this.key(event) });
    this.said = h("p", { class: "quiet" });
    const choice = h(
      "div",
      { class: "choice", role: "group", "aria-label": "How much of the timeline" },
      CHOICES.map(([label, many]) => h("button", { type: "button", "aria-pressed": String(many === 0), onclick: (event) => this.choose(many, event.target) }, label)),
    );
    this.element = h("div", { class: "timeline-box" }, h("div", { class: "row" }, this.said, choice), this.canvas);
    this.watch = new ResizeObserver(() => (this.kept.changed = true));
    this.watch.observe(this.canvas);
  }

  close() {
    this.watch.disconnect();
  }

  choose(many, button) {
    this.many = many;
    for (const other of button.parentElement.children) other.setAttribute("aria-pressed", String(other === button));
    this.kept.changed = true;
  }

  /** How many of the newest matches are shown. */
  get shown() {
    const auto = this.rate > FAST ? SPANS : 80;
    return Math.min(this.kept.size, this.many || auto);
  }

  draw() {
    const { canvas, kept } = this;
    const width = canvas.clientWidth;
    if (!width) return;
    const scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(HEIGHT * scale);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, HEIGHT);
    const style = getComputedStyle(canvas);
    this.colours = { bar: style.color, grid: style.borderTopColor, text: style.outlineColor, mark: style.caretColor };
    pen.font = `11px ${style.fontFamily}`;
    const shown = this.shown;
    this.boxes = [];
    if (!shown) {
      pen.fillStyle = this.colours.text;
      pen.fillText("No match so far.", 4, HEIGHT / 2);
      this.tell("no match so far");
      return;
    }
    let [low, high] = [Infinity, -Infinity];
    for (let i = 0; i < shown; i++) {
      const place = kept.place(i);
      low = Math.min(low, shown <= FEW ? kept.start[place] : kept.end[place]);
      high = Math.max(high, kept.end[place]);
    }
    if (!(high > low)) [low, high] = [low - 1, high + 1];
    const margin = (high - low) * 0.02;
    this.axis(pen, width, low - margin, high + margin);
    const x = (time) => ((time - low + margin) / (high - low + 2 * margin)) * (width - 2) + 1;
    if (shown <= FEW) this.bars(pen, shown, x);
    else this.density(pen, shown, x, width);
    this.tell(`the last ${plural(shown, "match")}, ${this.time(low)} to ${this.time(high, low)}`);
  }

  tell(what) {
    say(this.said, what[0].toUpperCase() + what.slice(1));
    this.canvas.setAttribute("aria-label", `Timeline: ${what}. Left and right choose a match, Enter opens it.`);
  }

  time(value, near) {
    return this.kept.ticks ? `tick ${this.kept.tick(value)}` : moment(Math.round(value) === value ? new Date(value).toISOString() : new Date(value), near && new Date(near));
  }

  axis(pen, width, low, high) {
    const base = HEIGHT - AXIS;
    pen.fillStyle = this.colours.text;
    pen.strokeStyle = this.colours.grid;
    pen.lineWidth = 1;
    const many = Math.max(2, Math.floor(width / 190));
    for (let i = 0; i < many; i++) {
      const at = Math.round(((i + 0.5) / many) * width) + 0.5;
      pen.beginPath();
      pen.moveTo(at, 0);
      pen.lineTo(at, base);
      pen.stroke();
      pen.textAlign = "center";
      const value = low + ((i + 0.5) / many) * (high - low);
      pen.fillText(this.kept.ticks ? count(this.kept.tick(value)) : moment(new Date(Math.round(value / 1000) * 1000)), at, HEIGHT - 6);
    }
    pen.beginPath();
    pen.moveTo(0, base + 0.5);
    pen.lineTo(width, base + 0.5);
    pen.stroke();
  }

  /** A bar a match, each in the first lane that is free there. */
  bars(pen, shown, x) {
    const { kept } = this;
    const lanes = Math.floor((HEIGHT - AXIS - 8) / LANE);
    const free = new Array(lanes).fill(-Infinity);
    for (let i = shown - 1; i >= 0; i--) {
      const place = kept.place(i);
      const left = x(kept.start[place]);
      const right = Math.max(left + 4, x(kept.end[place]));
      let lane = free.findIndex((end) => end + 2 <= left);
      if (lane < 0) lane = free.indexOf(Math.min(...free));
      free[lane] = right;
      const top = HEIGHT - AXIS - 8 - lane * LANE;
      const number = kept.number[place];
      pen.fillStyle = number === this.chosen ? this.colours.mark : this.colours.bar;
      pen.globalAlpha = number === this.chosen ? 1 : 0.35 + 0.5 * ((shown - i) / shown);
      pen.beginPath();
      pen.roundRect(left, top, right - left, LANE - 3, 3);
      pen.fill();
      this.boxes.push({ left, right, top, number });
    }
    pen.globalAlpha = 1;
  }

  /** How many matches end in each pixel's time, by height: the square root, so that few beside many are seen. */
  density(pen, shown, x, width) {
    const { kept } = this;
    const bins = new Uint32Array(Math.ceil(width / 2) + 1);
    const newest = new Float64Array(bins.length);
    for (let i = shown - 1; i >= 0; i--) {
      const place = kept.place(i);
      const bin = Math.floor(x(kept.end[place]) / 2);
      bins[bin]++;
      newest[bin] = kept.number[place];
    }
    const most = Math.max(...bins);
    const room = HEIGHT - AXIS - 6;
    pen.fillStyle = this.colours.bar;
    pen.globalAlpha = 0.8;
    bins.forEach((many, bin) => {
      if (!many) return;
      const high = Math.max(2, Math.sqrt(many / most) * room);
      pen.fillRect(bin * 2, HEIGHT - AXIS - high, 2, high);
      this.boxes.push({ left: bin * 2, right: bin * 2 + 2, top: HEIGHT - AXIS - high, number: newest[bin] });
    });
    pen.globalAlpha = 1;
  }

  click(event) {
    const near = this.boxes.filter((box) => Math.abs(box.top + 3 - event.offsetY) < 8 || this.shown > FEW);
    let best = null;
    for (const box of near) {
      const away = Math.max(box.left - event.offsetX, event.offsetX - box.right, 0);
      if (away < 6 && (!best || away < best.away)) best = { away, number: box.number };
    }
    if (best) this.pick(best.number, true);
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const at = this.boxes.findIndex((box) => box.number === this.chosen);
    if (step && this.boxes.length) {
      event.preventDefault();
      const next = at < 0 ? this.boxes.length - 1 : Math.min(this.boxes.length - 1, Math.max(0, at + step));
      this.pick(this.boxes[next].number, false);
    } else if (event.key === "Enter" && this.chosen) this.open(this.chosen);
  }

  pick(number, opened) {
    this.chosen = number;
    this.kept.changed = true;
    if (opened) this.open(number);
  }
}

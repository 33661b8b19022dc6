// Matches over time on a canvas: a bar from the first event to the last while they are few, else how many end per pixel.

import { h, say } from "./dom.js";
import { SPANS } from "./kept.js";
import { moment, plural } from "./words.js";

/** The least height, and the height that lanes have at most; the axis's, and a lane's. */
const HEIGHT = 132;
const TALL = 320;
const AXIS = 20;
const LANE = 9;
const FEW = 160;
const CHOICES = [["Auto", 0], ["Last 50", 50], ["Last 500", 500], ["All kept", SPANS]];

/** So many matches a second are too many for bars. */
const FAST = 100;

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const DAY = 1440 * MINUTE;

/** From a second to a day, what is round on a clock. */
const ROUND = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400].map((n) => n * SECOND);

/** The least round number, of milliseconds or of ticks, that is not less. */
function rounded(least, ticks) {
  if (!ticks && least > SECOND / 2 && least <= DAY) return ROUND.find((step) => step >= least);
  const unit = !ticks && least > DAY ? DAY : 1;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least / unit)));
  return unit * power * [1, 2, 5, 10].find((n) => n * power * unit >= least);
}

/** A time of the axis: no finer than its steps. */
function clock(time, step) {
  const [day, of] = new Date(time).toISOString().split("T");
  return time % DAY === 0 ? day : of.slice(0, step < SECOND ? 12 : step < MINUTE ? 8 : 5);
}

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
    this.element = h("section", { class: "card timeline-box", "aria-label": "Timeline" }, h("div", { class: "row" }, h("h2", {}, "Timeline"), this.said, choice), this.canvas);
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
    const shown = this.shown;
    this.boxes = [];
    if (!shown) {
      const pen = this.pen(width, HEIGHT);
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
    const which = kept.number[kept.place(shown - 1)] === 1 ? "all matches" : `the newest ${plural(shown, "match")}`;
    this.tell(`${which}, ${this.time(low)} to ${this.time(high, low)}${kept.ticks ? "" : " UTC"}`);
    if (!(high > low)) [low, high] = [low - 1, high + 1];
    const margin = (high - low) * 0.02;
    const x = (time) => ((time - low + margin) / (high - low + 2 * margin)) * (width - 2) + 1;
    const bars = shown <= FEW ? this.stacked(shown, x) : [];
    const lanes = bars.reduce((most, bar) => Math.max(most, bar.lane + 1), 0);
    const lane = Math.min(LANE, TALL / lanes);
    const pen = this.pen(width, Math.max(HEIGHT, Math.ceil(lanes * lane) + AXIS + 8));
    this.axis(pen, width, low - margin, high + margin, x);
    if (shown <= FEW) this.bars(pen, bars, lane);
    else this.density(pen, shown, x, width);
  }

  /** What draws on a canvas of a size, which is empty then. */
  pen(width, height) {
    const { canvas } = this;
    const scale = devicePixelRatio || 1;
    this.base = height - AXIS;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const style = getComputedStyle(canvas);
    this.colours = { bar: style.color, grid: style.borderTopColor, text: style.outlineColor, mark: style.caretColor };
    pen.font = `11px ${style.fontFamily}`;
    return pen;
  }

  tell(what) {
    say(this.said, what[0].toUpperCase() + what.slice(1));
    this.canvas.setAttribute("aria-label", `Timeline: ${what}. Left and right choose a match, Enter opens it.`);
  }

  time(value, near) {
    return this.kept.ticks ? `tick ${this.kept.tick(value)}` : moment(Math.round(value) === value ? new Date(value).toISOString() : new Date(value), near && new Date(near));
  }

  /** Lines at round times; at midnight the date. */
  axis(pen, width, low, high, x) {
    const { base, kept } = this;
    pen.fillStyle = this.colours.text;
    pen.strokeStyle = this.colours.grid;
    pen.lineWidth = 1;
    pen.textAlign = "center";
    const apart = pen.measureText(kept.ticks ? String(kept.tick(high)) : "00:00:00.000").width + 20;
    const step = rounded(((high - low) * apart) / width, kept.ticks);
    const shift = kept.ticks ? Number(kept.zero % BigInt(step)) : 0;
    pen.beginPath();
    for (let time = Math.ceil((low + shift) / step) * step - shift; time <= high; time += step) {
      const at = Math.round(x(time)) + 0.5;
      pen.moveTo(at, 0);
      pen.lineTo(at, base);
      const half = apart / 2 - 10;
      if (at > half && at < width - half) pen.fillText(kept.ticks ? String(kept.tick(time)) : clock(time, step), at, base + 14);
    }
    pen.moveTo(0, base + 0.5);
    pen.lineTo(width, base + 0.5);
    pen.stroke();
  }

  /** Where the bars of matches are: by their start, each in the first lane that is free there. */
  stacked(shown, x) {
    const { kept } = this;
    const bars = Array.from({ length: shown }, (_, i) => {
      const place = kept.place(i);
      const left = x(kept.start[place]);
      return { left, right: Math.max(left + 4, x(kept.end[place])), number: kept.number[place] };
    }).sort((one, other) => one.left - other.left || one.number - other.number);
    const ends = [];
    for (const bar of bars) {
      const free = ends.findIndex((end) => end + 2 <= bar.left);
      bar.lane = free < 0 ? ends.length : free;
      ends[bar.lane] = bar.right;
    }
    return bars;
  }

  bars(pen, bars, lane) {
    for (const { left, right, number, lane: at } of bars) {
      const bottom = this.base - 4 - at * lane;
      const high = lane * 0.7;
      pen.fillStyle = number === this.chosen ? this.colours.mark : this.colours.bar;
      pen.beginPath();
      pen.roundRect(left, bottom - high, right - left, high, high / 2);
      pen.fill();
      this.boxes.push({ left, right, top: bottom - high, bottom, number });
    }
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
    pen.fillStyle = this.colours.bar;
    bins.forEach((many, bin) => {
      if (!many) return;
      const high = Math.max(2, Math.sqrt(many / most) * (this.base - 6));
      pen.fillRect(bin * 2, this.base - high, 2, high);
      this.boxes.push({ left: bin * 2, right: bin * 2 + 2, top: 0, bottom: this.base, number: newest[bin] });
    });
  }

  click({ offsetX, offsetY }) {
    const away = ({ left, right, top, bottom }) => Math.max(left - offsetX, offsetX - right, 0) + Math.max(top - offsetY, offsetY - bottom, 0);
    const [best] = this.boxes.filter((box) => away(box) < 8).sort((one, other) => away(one) - away(other));
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

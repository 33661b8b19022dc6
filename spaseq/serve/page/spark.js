// Sparklines: the last minutes of a number, a second each.

import { s } from "./dom.js";

const WIDTH = 120;
const HEIGHT = 28;

/** The newest values of something that is measured every second; bounded. */
export class Series {
  constructor(size = 90) {
    this.size = size;
    this.values = [];
  }

  add(value) {
    this.values.push(value);
    if (this.values.length > this.size) this.values.shift();
  }
}

/** The increase a second of a number that only grows; what went back began anew. */
export class Growth {
  constructor() {
    this.last = null;
    this.at = 0;
  }

  per_second(value) {
    const now = performance.now();
    const grown = this.last === null || value < this.last ? 0 : (value - this.last) / ((now - this.at) / 1000);
    this.last = value;
    this.at = now;
    return grown;
  }
}

export function sparkline(label) {
  return s(
    "svg",
    { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    s("path", { class: "area" }),
    s("path", { class: "line", "vector-effect": "non-scaling-stroke" }),
  );
}

export function drawSpark(svg, series) {
  const { values, size } = series;
  if (values.length < 2) return;
  const top = Math.max(...values, 1e-9);
  const step = WIDTH / (Math.min(size, Math.max(values.length, 30)) - 1);
  const first = WIDTH - (values.length - 1) * step;
  const points = values.map((v, i) => `${(first + i * step).toFixed(1)} ${(HEIGHT - 2 - (v / top) * (HEIGHT - 5)).toFixed(1)}`);
  svg.children[1].setAttribute("d", `M${points.join("L")}`);
  svg.children[0].setAttribute("d", `M${first.toFixed(1)} ${HEIGHT}L${points.join("L")}L${WIDTH} ${HEIGHT}Z`);
}

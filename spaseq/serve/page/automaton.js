// The automaton of a query, with how many partial matches are in each state and have taken each edge.

import { s, say } from "./dom.js";
import { clipped, count, plural } from "./words.js";

const RADIUS = 22;
const CHARACTER = 7;
const LEVEL = 96;
const LINE = 15;

/** The width of a count of partial matches. */
const BADGE = 112;

/** A longer label is cut; a drawing that is so many times wider than its box goes downwards instead. */
const LONGEST = 24;
const WIDER = 1.3;

/** Layers by the longest way from the first state; an edge back, or to the same state, counts for nothing. */
function layers(states, edges) {
  const layer = new Map(states.map((state) => [state.id, 0]));
  const forward = edges.filter((edge) => edge.to > edge.from);
  for (let round = 0; round < states.length; round++) {
    for (const edge of forward) layer.set(edge.to, Math.max(layer.get(edge.to), layer.get(edge.from) + 1));
  }
  return layer;
}

/** One arrow for all edges between two states, a line of text for each. */
function arrows(edges) {
  const pairs = new Map();
  edges.forEach((edge, number) => {
    const key = `${edge.from} ${edge.to}`;
    const arrow = pairs.get(key) ?? { from: edge.from, to: edge.to, lines: [] };
    arrow.lines.push({ number, label: clipped(edge.label, LONGEST) });
    pairs.set(key, arrow);
  });
  return [...pairs.values()];
}

/**
 * Where the states are, x along the way from the first to the last, and what room all takes. `down`: x will be
 * turned downwards, so that lines of text are one below the other along it, and long across it.
 */
function measured(states, edges, down) {
  const layer = layers(states, edges);
  const all = arrows(edges);
  const last = Math.max(...layer.values());
  const gaps = new Array(last + 1).fill(down ? 50 : 84);
  const wide = (arrow) => Math.max(...arrow.lines.map((line) => (line.label.length + 9) * CHARACTER)) + 16;
  const need = (arrow) => (down ? LINE * arrow.lines.length + 30 : wide(arrow));
  for (const arrow of all) {
    const from = layer.get(arrow.from);
    const over = Math.max(1, layer.get(arrow.to) - from);
    const share = arrow.from === arrow.to ? need(arrow) - 2 * RADIUS : need(arrow) / over;
    for (let i = from; i < Math.min(from + over, last + 1); i++) gaps[i] = Math.max(gaps[i], share);
  }
  const x = [54];
  for (let i = 0; i < last; i++) x.push(x[i] + 2 * RADIUS + gaps[i]);
  const rows = new Map();
  const at = new Map();
  for (const state of states) {
    const column = layer.get(state.id);
    const row = rows.get(column) ?? 0;
    rows.set(column, row + 1);
    at.set(state.id, { x: x[column], row, column });
  }
  const most = Math.max(...rows.values());
  const loops = all.filter((arrow) => arrow.from === arrow.to);
  const over = all.filter((arrow) => arrow.from !== arrow.to && at.get(arrow.to).column - at.get(arrow.from).column !== 1);
  const lines = LINE * Math.max(0, ...all.map((arrow) => arrow.lines.length));
  const widest = Math.max(0, ...all.map(wide));
  const top = (down ? widest : lines) + (loops.length || over.length ? 50 : 8) + 22 * Math.max(0, over.length - 1);
  const level = down ? widest + 2 * RADIUS + BADGE : LEVEL;
  for (const place of at.values()) {
    place.y = top + RADIUS + (place.row + (most - rows.get(place.column)) / 2) * level;
  }
  const right = loops.some((arrow) => at.get(arrow.to).column === last) ? Math.max(...loops.filter((a) => at.get(a.to).column === last).map(need)) / 2 : 0;
  return { at, all, width: x[last] + RADIUS + Math.max(30, right), height: top + (most - 1) * level + 2 * RADIUS + (down ? BADGE : 55) };
}

/** How an arrow goes, and where its text stands. `lift` keeps those above the states apart. */
function way(arrow, at, lift) {
  const from = at.get(arrow.from);
  const to = at.get(arrow.to);
  if (arrow.from === arrow.to) {
    const y = from.y - RADIUS;
    return { path: `M${from.x - 11} ${y + 3}C${from.x - 26} ${y - 36} ${from.x + 26} ${y - 36} ${from.x + 11} ${y + 2}`, x: from.x, y: y - 32 };
  }
  if (to.column - from.column === 1) {
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const size = Math.hypot(dx, dy);
    const [ux, uy] = [dx / size, dy / size];
    const d = `M${from.x + ux * RADIUS} ${from.y + uy * RADIUS}L${to.x - ux * (RADIUS + 3)} ${to.y - uy * (RADIUS + 3)}`;
    return { path: d, x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 - 8 };
  }
  const top = Math.min(from.y, to.y) - RADIUS - 34 - lift;
  const middle = (from.x + to.x) / 2;
  const ends = `${to.x - Math.sign(to.x - from.x) * 8} ${to.y - RADIUS - 3}`;
  return { path: `M${from.x + 8} ${from.y - RADIUS + 1}C${from.x + 30} ${top} ${to.x - 30} ${top} ${ends}`, x: middle, y: top + 14 };
}

/** The drawing for a box of a width, and `show(automaton)` to write new counts into it. */
export class Automaton {
  constructor(automaton, room) {
    const { states, edges } = automaton;
    this.shape = shapeOf(automaton);
    this.room = room;
    const level = measured(states, edges, false);
    const down = level.width > WIDER * room;
    const { at, all, width, height } = down ? measured(states, edges, true) : level;
    const put = (x, y) => (down ? { x: height - y, y: x } : { x, y });
    const turn = down ? `translate(${height} 0) rotate(90)` : null;
    const targets = new Set(edges.filter((edge) => edge.from !== edge.to).map((edge) => edge.from));
    this.counts = [];
    this.paths = [];
    this.badges = new Map();
    let lift = 0;
    const drawn = all.map((arrow) => {
      const straight = arrow.from === arrow.to || at.get(arrow.to).column - at.get(arrow.from).column === 1;
      const { path, x, y } = way(arrow, at, straight ? 0 : (lift += 22) - 22);
      const line = s("path", { class: "arrow", d: path, "marker-end": "url(#tip)", transform: turn });
      const place = put(x, y);
      const after = arrow.lines.length - 1;
      const texts = arrow.lines.map(({ number, label }, i) => {
        const taken = s("tspan", { class: "taken", dx: 7 });
        this.counts[number] = taken;
        this.paths[number] = line;
        const up = down ? after / 2 - i : after - i;
        return s("text", { class: "label", x: place.x, y: place.y - LINE * up + (down ? 4 : 0) }, s("tspan", {}, label), taken);
      });
      return s("g", {}, line, ...texts);
    });
    const circles = states.map((state) => {
      const { x, y } = put(at.get(state.id).x, at.get(state.id).y);
      const accepting = state.accepting ?? !targets.has(state.id);
      const beside = down ? x - RADIUS - 8 : x;
      const badge = s("text", { class: "held", y: down ? y - 3 : y + RADIUS + 18 }, s("tspan", { x: beside }), s("tspan", { x: beside, dy: LINE }));
      this.badges.set(state.id, badge);
      return s(
        "g",
        { class: accepting ? "state accepting" : "state" },
        s("circle", { cx: x, cy: y, r: RADIUS }),
        accepting ? s("circle", { cx: x, cy: y, r: RADIUS - 4, class: "inner" }) : null,
        s("text", { class: "number", x, y: y + 5 }, String(state.id)),
        badge,
      );
    });
    const first = at.get(states[0].id);
    const start = s("path", { class: "arrow", d: `M${first.x - RADIUS - 26} ${first.y}H${first.x - RADIUS - 3}`, "marker-end": "url(#tip)", transform: turn });
    const tip = s(
      "marker",
      { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse", markerUnits: "userSpaceOnUse" },
      s("path", { d: "M0 0L8 4L0 8Z", class: "tip" }),
    );
    const [right, bottom] = (down ? [height, width] : [width, height]).map(Math.ceil);
    this.svg = s(
      "svg",
      { class: down ? "automaton down" : "automaton", viewBox: `0 0 ${right} ${bottom}`, width: right, height: bottom, role: "img" },
      s("defs", {}, tip),
      start,
      ...drawn,
      ...circles,
    );
    this.show(automaton);
  }

  show({ states, edges }) {
    const most = Math.max(1, ...edges.map((edge) => edge.count ?? 0));
    edges.forEach((edge, number) => {
      const text = edge.count === undefined || edge.count === null ? "" : `${count(edge.count)}×`;
      const changed = this.counts[number].textContent !== text;
      say(this.counts[number], text);
      const weight = 1.4 + 2.6 * (Math.log1p(edge.count ?? 0) / Math.log1p(most));
      this.paths[number].setAttribute("stroke-width", weight.toFixed(2));
      if (changed && text) flash(this.paths[number]);
    });
    for (const state of states) {
      const held = state.partial_matches;
      if (held === undefined || held === null || state.id === 0) continue;
      const [many, ...noun] = plural(held, "partial match").split(" ");
      const badge = this.badges.get(state.id);
      say(badge.firstChild, many);
      say(badge.lastChild, noun.join(" "));
    }
    const words = edges.map((edge) => `${edge.from} to ${edge.to} by ${edge.label}`).join("; ");
    this.svg.setAttribute("aria-label", `Automaton of ${states.length} states: ${words}`);
  }
}

function flash(path) {
  path.classList.remove("flash");
  void path.getBoundingClientRect(); // so that the same animation begins again
  path.classList.add("flash");
}

/** What of an automaton does not change with its counts. */
export function shapeOf({ states, edges }) {
  return JSON.stringify([states.map((state) => [state.id, state.accepting]), edges.map((edge) => [edge.from, edge.to, edge.label])]);
}

// A small graph drawn: resources from left to right, what is said of each as a line with its predicate.

import { s } from "./dom.js";
import { clipped as shortened, local, term } from "./words.js";

/** Of the monospaced face, whose width is known. */
const CHARACTER = 7.3;
const ROW = 30;
const NODE = 22;
const LONGEST = 24;

/** A drawing shrinks to its box, to this part of its size. */
const SMALLEST = 0.75;

const clipped = (text) => shortened(text, LONGEST);

const width = (text) => Math.ceil(clipped(text).length * CHARACTER) + 18;

/** Where each node stands: column by how far it is from a subject that is no object, row by row. */
function placed(triples) {
  const objects = new Set(triples.map(([, , object]) => object));
  const leaving = new Map();
  for (const triple of triples) {
    if (!leaving.has(triple[0])) leaving.set(triple[0], []);
    leaving.get(triple[0]).push(triple);
  }
  const roots = [...leaving.keys()].filter((subject) => !objects.has(subject));
  const places = new Map();
  let row = 0;

  function place(node, column) {
    const known = { node, column, row: 0 };
    places.set(node, known);
    const before = row;
    const rows = [];
    for (const [, , object] of leaving.get(node) ?? []) {
      if (!places.has(object)) rows.push(place(object, column + 1).row);
    }
    if (rows.length === 0) known.row = row++;
    else known.row = (rows[0] + rows.at(-1)) / 2;
    if (column === 0 && row === before) row++;
    return known;
  }

  // In a circle there is no root: then whatever comes first is one.
  for (const node of [...roots, ...leaving.keys()]) if (!places.has(node)) place(node, 0);
  return { places, rows: Math.max(row, 1) };
}

function columns(triples, places) {
  const nodes = [];
  const verbs = [];
  for (const { node, column } of places.values()) nodes[column] = Math.max(nodes[column] ?? 0, width(term(node)));
  for (const [subject, predicate] of triples) {
    const column = places.get(subject).column;
    verbs[column] = Math.max(verbs[column] ?? 0, width(local(predicate.slice(1, -1))) + 26);
  }
  const left = [];
  nodes.reduce((x, size, column) => ((left[column] = x), x + size + (verbs[column] ?? 0)), 1);
  const last = nodes.length - 1;
  return { nodes, left, total: left[last] + nodes[last] + 2 };
}

/** An SVG of triples, each term as in N-Triples. */
export function drawGraph(triples, label) {
  const { places, rows } = placed(triples);
  const { nodes, left, total } = columns(triples, places);
  const height = rows * ROW + 4;
  const y = (place) => place.row * ROW + ROW / 2 + 2;
  const edges = triples.map(([subject, predicate, object]) => {
    const from = places.get(subject);
    const to = places.get(object);
    const x1 = left[from.column] + width(term(subject));
    const x2 = left[to.column];
    const verb = clipped(local(predicate.slice(1, -1)));
    // The name of the predicate stands on the level part of the line, right before its object.
    const bend = left[from.column] + nodes[from.column] + 18;
    const back = to.column <= from.column;
    const path = back
      ? `M${x1} ${y(from)}C${x1 + 40} ${y(from) - ROW} ${x1 + 40} ${y(to) - ROW} ${x1 - 10} ${y(to) - NODE / 2}`
      : `M${x1} ${y(from)}C${bend} ${y(from)} ${bend - 16} ${y(to)} ${bend + 4} ${y(to)}H${x2 - 2}`;
    const text = s("text", { class: "verb", x: back ? x1 + 22 : x2 - 8, y: back ? y(from) - ROW : y(to) - 4 }, verb);
    text.append(s("title", {}, predicate));
    return s("g", {}, s("path", { class: "edge", d: path }), text);
  });
  const boxes = [...places.values()].map((place) => {
    const text = term(place.node);
    const kind = place.node.startsWith('"') ? "literal" : place.node.startsWith("_:") ? "blank" : "resource";
    const x = left[place.column];
    return s(
      "g",
      { class: `node ${kind}` },
      s("title", {}, shortened(place.node, 1000)),
      s("rect", { x, y: y(place) - NODE / 2, width: width(text), height: NODE, rx: kind === "literal" ? 4 : NODE / 2 }),
      s("text", { x: x + width(text) / 2, y: y(place) + 4 }, clipped(text)),
    );
  });
  const svg = s(
    "svg",
    { class: "graph", viewBox: `0 0 ${total} ${height}`, width: total, height, role: "img", "aria-label": label },
    ...edges,
    ...boxes,
  );
  svg.style.minWidth = `${SMALLEST * total}px`; // smaller it could not be read, and is scrolled
  return svg;
}

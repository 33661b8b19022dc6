// The side: queries and streams with their rates.

import { byId, h, keyed, say } from "./dom.js";
import { Growth, Series, drawSpark, sparkline } from "./spark.js";
import { count, duration, moment, plural, rate, streamName } from "./words.js";

/** What was measured of each query and stream, second by second. */
const measured = new Map();

function measure(kind, key, value, total) {
  const id = `${kind} ${key}`;
  const known = measured.get(id) ?? { growth: new Growth(), series: new Series(), now: 0 };
  measured.set(id, known);
  const grown = known.growth.per_second(total);
  known.now = value ?? grown;
  known.series.add(known.now);
  return known;
}

export const measuredOf = (kind, key) => measured.get(`${kind} ${key}`);

export const queryName = (query) => query.name ?? `query ${query.id}`;

function queryEntry(query) {
  const spark = sparkline("Matches per second");
  return h(
    "li",
    {},
    h(
      "a",
      { class: "entry", href: `#/query/${encodeURIComponent(query.id)}` },
      h("span", { class: "name" }, queryName(query)),
      spark,
      h("b", { class: "count" }),
    ),
  );
}

function showQuery(item, query, current) {
  const link = item.firstElementChild;
  const [, spark, total] = link.children;
  const known = measured.get(`query ${query.id}`);
  say(total, count(query.matches));
  const state = query.error ? "failed" : query.done ? "done" : "running";
  link.dataset.state = state;
  link.title = `${queryName(query)}: ${state}, ${plural(query.matches, "match")}, ${rate(known.now)} a second`;
  if (query.id === current) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
  drawSpark(spark, known.series);
}

function streamEntry(stream) {
  const name = streamName(stream.iri);
  return h(
    "li",
    { class: "entry", title: stream.iri },
    h("span", { class: "name" }, name),
    sparkline(`Events per second of ${name}`),
    h("b", { class: "count" }),
    h("span", { class: "quiet state" }),
  );
}

/** So many seconds behind the clock a stream is no live one, but played from a record. */
const PLAYED = 172800;

function showStream(item, stream) {
  const [, spark, now, state] = item.children;
  const known = measured.get(`stream ${stream.iri}`);
  say(now, `${rate(known.now)}/s`);
  const left = (stream.bad ?? 0) + (stream.late ?? 0);
  const refused = left ? `${count(stream.bad)} bad, ${count(stream.late)} late` : "";
  const behind = stream.lag === null || stream.lag === undefined ? "" : duration(stream.lag);
  const lag = behind && Math.abs(stream.lag) < PLAYED ? `lag ${behind}` : "";
  say(state, [plural(stream.events, "event"), lag, refused].filter(Boolean).join(" · "));
  item.title = `${stream.iri}${stream.watermark === null || stream.watermark === undefined ? "" : `, complete up to ${moment(stream.watermark)}${behind ? `, ${behind} behind the clock` : ""}`}`;
  drawSpark(spark, known.series);
}

export function showSide(queries, streams, current) {
  for (const query of queries) measure("query", query.id, null, query.matches ?? 0);
  for (const stream of streams) measure("stream", stream.iri, stream.rate, stream.events ?? 0);
  const kept = new Set([...queries.map((query) => `query ${query.id}`), ...streams.map((stream) => `stream ${stream.iri}`)]);
  for (const key of measured.keys()) if (!kept.has(key)) measured.delete(key);
  keyed(byId("queries"), queries, (query) => query.id, queryEntry, (item, query) => showQuery(item, query, current));
  keyed(byId("streams"), streams, (stream) => stream.iri, streamEntry, showStream);
  const letters = streams.reduce((sum, stream) => sum + (stream.bad ?? 0) + (stream.late ?? 0), 0);
  say(byId("letters-count"), count(letters));
  const sum = (kind, items, key) => items.reduce((total, item) => total + (measured.get(`${kind} ${item[key]}`)?.now ?? 0), 0);
  const totals = [
    ["Queries", count(queries.length)],
    ["Events/s", rate(sum("stream", streams, "iri"))],
    ["Matches/s", rate(sum("query", queries, "id"))],
  ];
  keyed(
    byId("totals"),
    totals,
    ([name]) => name,
    ([name]) => h("div", {}, h("dt", {}, name), h("dd")),
    (item, [, value]) => say(item.lastElementChild, value),
  );
}

/** Of one query how many matches it has, between two answers of the server. */
export function showCount(id, matches) {
  const item = [...byId("queries").children].find((one) => one.dataset.key === id);
  if (item) say(item.querySelector(".count"), count(matches));
}

/** The query link that has the page, before it or behind it. */
export function neighbour(current, step) {
  const links = [...byId("queries").querySelectorAll("a")];
  const at = links.findIndex((link) => link.parentElement.dataset.key === current);
  return links[at < 0 ? 0 : (at + step + links.length) % links.length];
}

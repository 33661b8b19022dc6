// A query's text with its keywords, variables, IRIs, strings and comments told apart.

import { h } from "./dom.js";

/** A longer text is one node: each key would make a node of each of its words. */
const LONGEST = 100000;

const KEYWORDS = new Set(
  "ALL AND AS ASC ASK AT AVG BASE BIND BY CONSTRUCT CONSUME COUNT DAY DAYS DEFINE DESC DISTINCT EMIT EVENTS EXISTS FILTER FIRST FROM GPM GRAPH GROUP HAVING HOUR HOURS IN IRI LAST LIMIT MATCH MAX MIN MINUTE MINUTES MILLISECOND MILLISECONDS NAMED NOT OFFSET ON OPTIONAL ORDER PARTITION PAST PREFIX PREV REGISTER SECOND SECONDS SELECT SEPARATOR SEQ SKIP SLIDING STREAM SUM TICK TICKS TO TUMBLING UNION UNDEF VALUES WHERE WITHIN".split(" "),
);

// Each alternative takes all that it has looked at, so that the time is linear: a string to the end of its line,
// a word as a whole. What a word is, `kindOf` says.
const PATTERN = new RegExp(
  `(?<comment>#[^\\n]*)|(?<iri><[^<>"{}|^\`\\s]*>)|(?<string>"(?:[^"\\\\\\n]|\\\\.)*"?|'(?:[^'\\\\\\n]|\\\\.)*'?)|(?<variable>[?$]\\w+)|(?<figure>\\b\\d+(?:\\.\\d+)?\\b(?!:))|(?<word>\\w[\\w-]*(?::[\\w-]+)?|:[\\w-]+)`,
  "g",
);

function kindOf(word) {
  if (word.includes(":")) return "name";
  return KEYWORDS.has(word.toUpperCase()) ? "keyword" : null;
}

/** The text as nodes, one a line. */
export function highlighted(text) {
  if (text.length > LONGEST) return [text];
  return text.split("\n").map((line) => h("span", { class: "line" }, ...tokens(line)));
}

function tokens(text) {
  const nodes = [];
  let at = 0;
  for (const found of text.matchAll(PATTERN)) {
    const [group, token] = Object.entries(found.groups).find(([, value]) => value !== undefined);
    const kind = group === "word" ? kindOf(token) : group;
    if (kind === null) continue;
    nodes.push(text.slice(at, found.index), h("span", { class: `t-${kind}` }, token));
    at = found.index + token.length;
  }
  nodes.push(text.slice(at));
  return nodes;
}

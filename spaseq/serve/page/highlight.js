// A query's text with its keywords, variables, IRIs, strings and comments told apart.

import { h } from "./dom.js";

const KEYWORDS =
  "ALL AND AS ASC ASK AT AVG BASE BIND BY CONSTRUCT CONSUME COUNT DAY DAYS DEFINE DESC DISTINCT EMIT EVENTS EXISTS FILTER FIRST FROM GPM GRAPH GROUP HAVING HOUR HOURS IN IRI LAST LIMIT MATCH MAX MIN MINUTE MINUTES MILLISECOND MILLISECONDS NAMED NOT OFFSET ON OPTIONAL ORDER PARTITION PAST PREFIX PREV REGISTER SECOND SECONDS SELECT SEPARATOR SEQ SKIP SLIDING STREAM SUM TICK TICKS TO TUMBLING UNION UNDEF VALUES WHERE WITHIN";

const PATTERN = new RegExp(
  `(?<comment>#[^\\n]*)|(?<iri><[^<>"{}|^\`\\s]*>)|(?<string>"(?:[^"\\\\\\n]|\\\\.)*"|'(?:[^'\\\\\\n]|\\\\.)*')|(?<variable>[?$]\\w+)|(?<name>[\\w-]*:[\\w-]+)|(?<keyword>\\b(?:${KEYWORDS.split(" ").join("|")})\\b)|(?<figure>\\b\\d+(?:\\.\\d+)?\\b)`,
  "gi",
);

/** The text as nodes. */
export function highlighted(text) {
  const nodes = [];
  let at = 0;
  for (const found of text.matchAll(PATTERN)) {
    const [kind, token] = Object.entries(found.groups).find(([, value]) => value !== undefined);
    nodes.push(text.slice(at, found.index), h("span", { class: `t-${kind}` }, token));
    at = found.index + token.length;
  }
  nodes.push(text.slice(at));
  return nodes;
}

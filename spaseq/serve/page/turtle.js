// The triples of an event's Turtle, as its terms in N-Triples: what the server writes, which is a part of Turtle.

import { unescaped } from "./words.js";

const RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const XSD = "http://www.w3.org/2001/XMLSchema#";

const TOKEN = new RegExp(
  [
    /\s+|#[^\n]*/, // nothing
    /<[^<>"{}|^`\s]*>/, // an IRI
    /"""(?:[^"\\]|\\.|"(?!""))*"""|'''(?:[^'\\]|\\.|'(?!''))*'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/,
    /\^\^|@[A-Za-z]+(?:-[A-Za-z0-9]+)*/,
    /_:[\w.-]*\w/,
    /[+-]?(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+|[+-]?\d*\.\d+|[+-]?\d+/,
    /(?:[\p{L}][\p{L}\p{N}_.-]*)?:(?:(?:[\p{L}\p{N}_:-]|%[0-9A-Fa-f]{2}|\\.)(?:[\p{L}\p{N}_:.-]|%[0-9A-Fa-f]{2}|\\.)*)?/u,
    /[A-Za-z]+|[.;,[\]()]/,
  ]
    .map((part) => `(?:${part.source})`)
    .join("|"),
  "suy",
);

function* tokens(text) {
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const found = TOKEN.exec(text);
    if (!found) throw new SyntaxError(`no Turtle at ${at}: ${text.slice(at, at + 20)}`);
    if (/^[\s#]/.test(found[0])) continue;
    let token = found[0];
    // A name does not end with the dot that ends the triple.
    if (/^[^<"'\s:]*:/.test(token)) while (token.endsWith(".")) token = token.slice(0, -1);
    TOKEN.lastIndex = at + token.length;
    yield token;
  }
}

/** The triples of a Turtle document: `[subject, predicate, object]`, each a term of N-Triples. SyntaxError. */
export function triples(text) {
  const all = [...tokens(text)];
  const prefixes = new Map();
  const found = [];
  let at = 0;
  let blanks = 0;
  const next = () => {
    if (at >= all.length) throw new SyntaxError("the Turtle ends too early");
    return all[at++];
  };
  const skip = (token) => all[at] === token && ++at;
  const iri = (value) => `<${value}>`;

  function name(token) {
    if (token.startsWith("<") || token.startsWith("_:")) return token;
    const colon = token.indexOf(":");
    if (colon < 0) throw new SyntaxError(`no term: ${token}`);
    const base = prefixes.get(token.slice(0, colon));
    if (base === undefined) throw new SyntaxError(`no prefix ${token.slice(0, colon)}`);
    return iri(base + token.slice(colon + 1).replace(/\\(.)/g, "$1"));
  }

  function literal(token) {
    const size = token.startsWith('"""') || token.startsWith("'''") ? 3 : 1;
    const raw = token.slice(size, -size).replace(/\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)/gs, (_, c) => unescaped(c));
    const quoted = JSON.stringify(raw);
    if (skip("^^")) return `${quoted}^^${name(next())}`;
    return all[at]?.startsWith("@") ? quoted + next() : quoted;
  }

  function object() {
    const token = next();
    if (/^["']/.test(token)) return literal(token);
    if (token === "true" || token === "false") return `"${token}"^^${iri(`${XSD}boolean`)}`;
    if (/^[+-]?[\d.]/.test(token)) {
      const type = /[eE]/.test(token) ? "double" : token.includes(".") ? "decimal" : "integer";
      return `"${token}"^^${iri(XSD + type)}`;
    }
    if (token === "[") return nested();
    if (token === "(") return listed();
    return name(token);
  }

  function nested() {
    const node = `_:anonymous${blanks++}`;
    if (!skip("]")) {
      properties(node);
      next();
    }
    return node;
  }

  function listed() {
    if (skip(")")) return iri(`${RDF}nil`);
    const node = `_:list${blanks++}`;
    found.push([node, iri(`${RDF}first`), object()]);
    found.push([node, iri(`${RDF}rest`), listed()]);
    return node;
  }

  function properties(subject) {
    do {
      if ([".", "]", undefined].includes(all[at])) return; // after a last semicolon
      const verb = next();
      const predicate = verb === "a" ? iri(`${RDF}type`) : name(verb);
      do found.push([subject, predicate, object()]);
      while (skip(","));
    } while (skip(";"));
  }

  while (at < all.length) {
    const token = next();
    if (/^@?prefix$/i.test(token)) {
      const prefix = next().replace(/:$/, "");
      prefixes.set(prefix, next().slice(1, -1));
      skip(".");
      continue;
    }
    const subject = token === "[" ? nested() : token === "(" ? listed() : name(token);
    if (all[at] !== ".") properties(subject);
    if (next() !== ".") throw new SyntaxError("a triple does not end");
  }
  return found;
}

// Numbers, times and terms in words.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (n) => (n === null || n === undefined ? "–" : n < 100000 ? whole.format(n) : short.format(n));

export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : /(?:ch|s)$/.test(noun) ? "es" : "s"}`;

export function rate(n) {
  if (n === null || n === undefined) return "–";
  return n >= 100 ? count(Math.round(n)) : n >= 10 ? n.toFixed(0) : n.toFixed(1);
}

/** Seconds as people say them: 340 ms, 1.2 s, 3 min, 2 h. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  const size = Math.abs(seconds);
  if (size < 1) return `${Math.round(seconds * 1000)} ms`;
  if (size < 90) return `${+seconds.toFixed(1)} s`;
  if (size < 5400) return `${+(seconds / 60).toFixed(1)} min`;
  if (size < 172800) return `${+(seconds / 3600).toFixed(1)} h`;
  return `${+(seconds / 86400).toFixed(1)} d`;
}

/** JSON with whole numbers as they are: beyond 2^53, where a number would be rounded, as a BigInt. */
export const parsed = (text) => JSON.parse(text, exact);

function exact(_, value, context) {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  return /^-?\d+$/.test(context?.source ?? "") ? BigInt(context.source) : value;
}

export const isTick = (time) => typeof time === "number" || typeof time === "bigint";

const pad = (n, size = 2) => String(n).padStart(size, "0");

/** A time as it is shown, in UTC: the day, too, unless `near` is on the same. */
export function moment(time, near) {
  if (time === null || time === undefined) return "–";
  if (isTick(time)) return `tick ${time}`;
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return String(time);
  const fraction = at.getUTCMilliseconds() ? `.${pad(at.getUTCMilliseconds(), 3)}` : "";
  const clock = `${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}:${pad(at.getUTCSeconds())}${fraction}`;
  const day = at.toISOString().slice(0, 10);
  return near && new Date(near).toISOString().slice(0, 10) === day ? clock : `${day} ${clock}`;
}

/** How long from one time to another, in words. */
export function between(start, end) {
  return isTick(start) ? `${BigInt(end) - BigInt(start)} ticks` : duration((Date.parse(end) - Date.parse(start)) / 1000);
}

/** The end of an IRI that says most. */
export function local(iri) {
  let bare = iri;
  while (bare.endsWith("#") || bare.endsWith("/")) bare = bare.slice(0, -1);
  const cut = Math.max(bare.lastIndexOf("#"), bare.lastIndexOf("/"), bare.startsWith("urn:") ? bare.lastIndexOf(":") : -1);
  return bare.slice(cut + 1) || iri;
}

/** The name of a stream is cut after so many characters. */
const NAME = 60;

/** What is before the last two parts of a stream's IRI is seldom worth its place. */
export function streamName(iri) {
  const parts = iri.replace(/^[a-z]+:\/\//, "").split(/[/#]/).filter((part) => part && part !== "stream");
  return clipped(parts.length > 2 ? parts.slice(-2).join(" / ") : local(iri), NAME);
}

/** The begin of a text that is too long to be shown. */
export const clipped = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** A term of SPARQL JSON as people read it; only the begin of a long one is looked at. */
export function jsonTerm({ type, value: text }, most = 1000) {
  const begin = clipped(text, most);
  return type === "uri" ? local(begin) : type === "bnode" ? `_:${begin}` : begin;
}

/** The same with what a literal is of. */
export function wholeTerm(term) {
  const of = term["xml:lang"] ? `@${term["xml:lang"]}` : term.datatype ? ` (${local(term.datatype)})` : "";
  return `${clipped(term.value, 1000)}${of}`;
}

/** A term of N-Triples as people read it; only the begin of a long one is looked at. */
export function term(whole, most = 1000) {
  const text = clipped(whole, most);
  if (text.startsWith("<")) return local(text.slice(1, -1));
  const literal = /^"((?:[^"\\]|\\.)*)(?:…|"(?:@[\w-]+|\^\^<[^>]*>)?)$/s.exec(text);
  if (!literal) return text;
  return literal[1].replace(/\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)/gs, (_, code) => unescaped(code));
}

const ESCAPES = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" };

export function unescaped(code) {
  if (code.length > 1) return String.fromCodePoint(parseInt(code.slice(1), 16));
  return ESCAPES[code] ?? code;
}

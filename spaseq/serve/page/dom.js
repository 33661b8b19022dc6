// Elements made from plain values: text is always text, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element: `h("a", {href: "#"}, "text")`. */
export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);

/** An SVG element. */
export const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

export const byId = (id) => document.getElementById(id);

/** Changes the text only where it differs, so that nothing is selected, announced or drawn anew without need. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Brings the children of an element in line with `items`: one child a key, made once and then updated.
 * So focus, selection and hover stay where they are.
 */
export function keyed(parent, items, keyOf, make, update) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let child = old.get(key);
    old.delete(key);
    if (!child) {
      child = make(item);
      child.dataset.key = key;
    }
    update(child, item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const child of old.values()) child.remove();
}

/** Does something once at a time; the button keeps the focus meanwhile, which a disabled one would lose. */
export async function once(button, work) {
  if (button.getAttribute("aria-disabled") === "true") return;
  button.setAttribute("aria-disabled", "true");
  try {
    await work();
  } finally {
    button.removeAttribute("aria-disabled");
  }
}

let announced = 0;

/** Says something to who cannot see it, politely and not more often than every few seconds. */
export function announce(text, always = false) {
  if (!always && performance.now() - announced < 8000) return;
  announced = performance.now();
  say(byId("live"), text);
}

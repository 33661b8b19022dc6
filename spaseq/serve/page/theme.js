// Light, dark, or as the system says.

import { announce, byId } from "./dom.js";

const KEPT = "spaseq-theme";
const THEMES = ["auto", "light", "dark"];
const SIGNS = { auto: "◐", light: "☀", dark: "☾" };

let changed = () => {};

/** `redraw` is called when colours changed. */
export function startTheme(redraw) {
  changed = redraw;
  show(localStorage.getItem(KEPT) ?? "auto");
  byId("theme").addEventListener("click", nextTheme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => changed());
}

export function nextTheme() {
  const now = document.documentElement.dataset.theme;
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
  localStorage.setItem(KEPT, next);
  show(next);
  announce(`Theme: ${next}`, true);
}

function show(theme) {
  const known = THEMES.includes(theme) ? theme : "auto";
  document.documentElement.dataset.theme = known;
  const button = byId("theme");
  button.textContent = SIGNS[known];
  button.setAttribute("aria-label", `Theme: ${known === "auto" ? "as the system" : known}`);
  changed();
}

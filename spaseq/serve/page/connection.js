// Whether the server is there: a banner when it is not, and tries again, each later than the one before.

import { getText } from "./api.js";
import { byId, h, say } from "./dom.js";

const DELAYS = [0.5, 1, 2, 4, 8, 15];

let tries = 0;
let lostAt = null;
let trying = null;
let wake = () => {};

export const isLost = () => lostAt !== null;

/** Says that the server answered. */
export function reached() {
  tries = 0;
  const pill = byId("link");
  pill.dataset.state = "live";
  say(pill, "live");
  byId("banner").hidden = true;
  lostAt = null;
}

/** Resolves when the server is there again; who comes while it is being tried waits for the same. */
export function regained() {
  trying ??= retry().finally(() => (trying = null));
  return trying;
}

async function retry() {
  lostAt ??= Date.now();
  const pill = byId("link");
  pill.dataset.state = "lost";
  say(pill, "lost");
  for (;;) {
    const delay = DELAYS[Math.min(tries++, DELAYS.length - 1)];
    await waited(delay);
    try {
      await getText("/healthz");
      reached();
      return;
    } catch {
      // the next try
    }
  }
}

/** Counts down in the banner, until the time is over or somebody wants to try at once. */
function waited(seconds) {
  const banner = byId("banner");
  const left = h("span", { class: "left", "aria-hidden": "true" });
  const again = h("button", { type: "button", class: "button small" }, "Try now");
  banner.replaceChildren(
    h("span", {}, h("b", {}, "Connection lost. "), "Nothing is lost: matches go on where they stopped. "),
    left,
    again,
  );
  banner.hidden = false;
  const end = Date.now() + seconds * 1000;
  return new Promise((resolve) => {
    const show = () => say(left, `next try in ${Math.max(0, Math.ceil((end - Date.now()) / 1000))} s`);
    const ticking = setInterval(show, 500);
    const timer = setTimeout(() => wake(), seconds * 1000);
    wake = () => {
      clearInterval(ticking);
      clearTimeout(timer);
      resolve();
    };
    again.addEventListener("click", () => wake());
    show();
  });
}

addEventListener("online", () => wake());

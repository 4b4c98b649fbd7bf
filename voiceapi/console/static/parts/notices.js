// Sentences that appear in the corner and are read out. They cover no control that has the focus.

import { h } from "./dom.js";

const SECONDS = 8;
const corner = document.querySelector(".corner");

// What has the focus is kept above the notices; the style sheet does so for what gets it later.
new ResizeObserver(() => {
  const focused = document.activeElement;
  if (focused !== document.body && !corner.contains(focused)) focused.scrollIntoView({ block: "nearest" });
}).observe(corner);

/**
 * Show a sentence. `kind`: nothing for what went well, which goes by itself; "warning" and "error" stay until they are
 * closed, and an error is read out at once. `action`: [text, act] of a button beside it. Returned: what takes it away.
 */
export function notify(text, kind = "", action = null) {
  const place = document.getElementById(kind === "error" ? "errors" : "notices");
  for (const same of place.querySelectorAll(".notice")) {
    if (same.firstChild.textContent === text) same.remove();
  }
  const close = h("button", { type: "button", class: "close", "aria-label": "Dismiss" }, "×");
  const more = action && h("button", { type: "button", class: "button small" }, action[0]);
  const notice = h("div", { class: `notice ${kind}` }, h("p", {}, text), more, close);
  more?.addEventListener("click", () => {
    notice.remove();
    action[1]();
  });
  close.addEventListener("click", () => notice.remove());
  place.append(notice);
  if (kind) return () => notice.remove();
  // It waits while somebody points at it or is in it.
  const remove = () => (notice.matches(":hover, :focus-within") ? setTimeout(remove, 1000) : notice.remove());
  setTimeout(remove, SECONDS * 1000);
  return () => notice.remove();
}

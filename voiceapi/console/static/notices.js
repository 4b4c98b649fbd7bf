// Sentences that appear in the corner and are read out.

import { h } from "./dom.js";

const SECONDS = 8;

/**
 * Show a sentence. `kind`: nothing for what went well, which goes by itself; "warning" and "error" stay until they are
 * closed, and an error is read out at once.
 */
export function notify(text, kind = "") {
  const place = document.getElementById(kind === "error" ? "errors" : "notices");
  for (const same of place.querySelectorAll(".notice")) {
    if (same.firstChild.textContent === text) same.remove();
  }
  const close = h("button", { type: "button", class: "close", "aria-label": "Dismiss" }, "×");
  const notice = h("div", { class: `notice ${kind}` }, h("p", {}, text), close);
  close.addEventListener("click", () => notice.remove());
  place.append(notice);
  if (kind) return;
  // It waits while somebody points at it or is in it.
  const remove = () => (notice.matches(":hover, :focus-within") ? setTimeout(remove, 1000) : notice.remove());
  setTimeout(remove, SECONDS * 1000);
}

// Buttons, links, and what can be copied.

import { h } from "./dom.js";
import { notify } from "./notices.js";

/**
 * A button. `act` gets the button and may be asynchronous: meanwhile the button does nothing, and an error is shown as a
 * notice. `kind`: primary, danger, small, plain, or several of them.
 */
export function button(text, act, { kind = "", ...props } = {}) {
  const element = h("button", { type: "button", class: `button ${kind}`, ...props }, text);
  element.addEventListener("click", async () => {
    if (element.getAttribute("aria-disabled") === "true") return;
    element.setAttribute("aria-disabled", "true");
    try {
      await act(element);
    } catch (error) {
      if (error.name !== "AbortError") notify(error.message, "error");
    } finally {
      element.removeAttribute("aria-disabled");
    }
  });
  return element;
}

/** A link to a page of the console, such as `/agents/3`. */
export function link(text, path, props = {}) {
  return h("a", { href: `#${path}`, ...props }, text);
}

/** A text with a button that copies it. */
export function copyable(text, name = "Copy") {
  const shown = h("code", { class: "copyable-text", tabindex: "-1" }, text);
  return h("div", { class: "copyable" }, shown, button("Copy", () => copy(text, shown), { kind: "small", "aria-label": name }));
}

async function copy(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    notify("Copied.");
  } catch {
    // Without HTTPS, browsers offer no clipboard to pages.
    shown.focus();
    getSelection().selectAllChildren(shown);
    const copied = document.execCommand("copy");
    notify(copied ? "Copied." : "It is selected: copy it with Ctrl+C.");
  }
}

/** Let the browser save this content, a Blob or a text, as a file. */
export function download(name, content, type = "text/plain") {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const anchor = h("a", { href: address, download: name, hidden: true });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** `act`, called once its caller has been quiet for so many milliseconds. */
export function debounced(act, milliseconds = 300) {
  let timer = null;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), milliseconds);
  };
}

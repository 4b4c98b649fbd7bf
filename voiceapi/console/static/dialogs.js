// Dialogs: a question, and a form.

import { h, uniqueId } from "./dom.js";
import { formWith } from "./forms.js";

/** Open a dialog; once it closes, it is gone, the focus is back, and `closed` gets it. */
function open(dialog, closed) {
  dialog.addEventListener("close", () => {
    dialog.remove();
    closed(dialog);
  });
  document.body.append(dialog);
  // What the dialog was about may be gone by the time that it closes, with the page that it belongs to.
  window.addEventListener("hashchange", () => dialog.close("no"), { once: true });
  dialog.showModal();
}

/** Ask before something that can't be undone; true if the answer is yes. */
export function confirm(question, yes) {
  const id = uniqueId("question");
  return new Promise((resolve) => {
    open(h("dialog", { role: "alertdialog", "aria-labelledby": id },
      h("form", { method: "dialog" },
        h("p", { id }, question),
        h("div", { class: "actions" },
          h("button", { value: "no", class: "button" }, "Cancel"),
          h("button", { value: "yes", class: "button danger" }, yes)))),
    (dialog) => resolve(dialog.returnValue === "yes"));
  });
}

/**
 * A form in a dialog. `act` gets the form; what it returns is the promise's value, and the dialog closes unless it
 * raises, whose error is shown in the form. null if it was cancelled.
 */
export function dialogForm({ title, submit, act, kind, cancel = "Cancel" }, ...children) {
  const id = uniqueId("title");
  return new Promise((resolve) => {
    let result = null;
    const close = h("button", { type: "button", class: "button", on: { click: () => dialog.close() } }, cancel);
    const save = async (element) => {
      const given = await act(element);
      if (!dialog.open) return;
      result = given ?? true;
      dialog.close();
    };
    const dialog = h("dialog", { "aria-labelledby": id },
      h("h2", { id }, title),
      formWith({ submit, act: save, beside: close, kind }, ...children));
    open(dialog, () => resolve(result));
  });
}

/** A dialog that shows something until it is closed. */
export function showDialog(title, ...children) {
  const id = uniqueId("title");
  return new Promise((resolve) => {
    open(h("dialog", { "aria-labelledby": id },
      h("h2", { id }, title), children,
      h("form", { method: "dialog", class: "actions" }, h("button", { class: "button primary" }, "Close"))),
    () => resolve());
  });
}

// Dialogs: questions, and forms.

import { h, uniqueId } from "./dom.js";
import { formWith } from "./forms.js";

/** Open a dialog until `event`; once it closes, it is gone, the focus is back, and `closed` gets it. */
function open(dialog, closed, event = "hashchange") {
  dialog.addEventListener("close", () => {
    dialog.remove();
    closed(dialog);
  });
  document.body.append(dialog);
  // What the dialog was about may be gone by the time that it closes, with the page that it belongs to.
  window.addEventListener(event, () => dialog.close("no"), { once: true });
  dialog.showModal();
  dialog.scrollTop = 0; // what has the focus may be below a heading that isn't seen
}

/** Ask a question. `answers`: [value, text, kind of button]; the value of the one that is given, "no" for none. */
export function ask(question, ...answers) {
  const id = uniqueId("question");
  return new Promise((resolve) => {
    open(h("dialog", { role: "alertdialog", "aria-labelledby": id },
      h("form", { method: "dialog" },
        h("p", { id }, question),
        h("div", { class: "actions" },
          h("button", { value: "no", class: "button" }, "Cancel"),
          answers.map(([value, text, kind]) => h("button", { value, class: `button ${kind}` }, text))))),
    (dialog) => resolve(dialog.returnValue || "no"));
  });
}

/** Ask before something that can't be undone; true if the answer is yes. */
export async function confirm(question, yes) {
  return (await ask(question, ["yes", yes, "danger"])) === "yes";
}

/**
 * A form in a dialog. `act` gets the form; what it returns is the promise's value, and the dialog closes unless it
 * raises, whose error is shown in the form. null if it was cancelled. `isWork`: whether what is typed in it would be lost
 * by leaving the page. `asks`: as that of `formWith`; it also gets what closes the dialog.
 */
export function dialogForm({ title, submit, act, kind, cancel = "Cancel", isWork = true, asks = null }, ...children) {
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
    const closed = new AbortController();
    const dialog = h("dialog", { "aria-labelledby": id },
      h("h2", { id }, title),
      formWith({
        submit, act: save, beside: close, kind, saves: isWork ? closed.signal : null,
        asks: asks && ((error, retry) => asks(error, retry, () => dialog.close())),
      }, ...children));
    open(dialog, () => {
      closed.abort();
      resolve(result);
    }, "pageleft"); // by an address that is gone to, too: the router asks first
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

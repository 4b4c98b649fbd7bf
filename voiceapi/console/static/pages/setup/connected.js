// Connected numbers: which are, and how that is undone.

import { api } from "../../app/api.js";
import { button } from "../../parts/controls.js";
import { ask, showDialog } from "../../parts/dialogs.js";
import { h } from "../../parts/dom.js";

const PATH = "/organizations/connected-numbers";

/** Sentences as a list. */
export function listOf(sentences) {
  return h("ul", {}, sentences.map((each) => h("li", {}, each)));
}

/** The numbers of a configuration that are connected. */
export async function connectedNumbers(configuration, signal) {
  const { connected_numbers: known } = await api.get(PATH, { signal });
  return known.filter((each) => each.telephony_configuration_id === configuration).map((each) => each.number);
}

/** The button that puts back what stood before a number was connected, after it has said what; `done` is called then. */
export function undoing(configuration, number, signal, done) {
  const which = { telephony_configuration_id: configuration, number };
  const undo = async () => {
    const planned = await api.post(`${PATH}/undo`, { body: { ...which, dry_run: true }, signal });
    const sentences = planned.restored.join(" ") || "Nothing is left to be put back.";
    if ((await ask(`Undo connecting ${number}? ${sentences}`, ["yes", "Undo", "danger"])) !== "yes") return;
    const { left } = await api.post(`${PATH}/undo`, { body: which, signal });
    if (left.length) await showDialog("This was changed since, and stays", listOf(left));
    done();
  };
  return button("Undo connecting", undo, { kind: "small danger", "aria-label": `Undo connecting ${number}` });
}

// Talk as a drawer beside an agent's graph: change a prompt and say the same again, without leaving the page.

import { button, link } from "../../parts/components.js";
import { h, uniqueId } from "../../parts/dom.js";
import { chatPanel } from "./chat-panel.js";

/**
 * `workflow()` as it is stored; `light(node, edge)` shows where the conversation is; `save()` stores what was changed, and is
 * false if that failed. Returned: `opener`, the button that opens and closes it, and `element`.
 */
export function talkDrawer({ workflow, signal, light, save }) {
  const place = h("div");
  const element = h("aside", { class: "card drawer", id: uniqueId("drawer"), hidden: true, "aria-label": "Talk beside" },
    h("div", { class: "agent-head" }, h("h2", { tabindex: "-1" }, "Talk"), h("div", { class: "actions" },
      link("Talk by calls", `/agents/${workflow().id}/talk`, { class: "button small" }), button("Close", () => toggle(false), { kind: "small" }))),
    place);
  const opener = button("Talk beside", () => toggle(element.hidden), { "aria-expanded": "false", "aria-controls": element.id });
  let panel = null;
  let run = null; // of the chat
  let version = null; // that answers in it

  function toggle(isOpen) {
    element.hidden = !isOpen;
    element.parentElement.classList.toggle("has-drawer", isOpen);
    opener.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) {
      panel.stop();
      light();
      opener.focus();
      return;
    }
    panel ??= chatPanel({
      workflow: workflow(),
      language: workflow().workflow_configurations?.language || "en-US",
      signal,
      readContext: () => workflow().template_context_variables ?? {},
      light,
      variables: () => {},
      changed: (chat) => {
        if (chat.workflow_run_id !== run) version = workflow().version_number;
        run = chat.workflow_run_id;
      },
      before: save,
      again: { isCurrent: () => version === workflow().version_number },
    });
    place.replaceChildren(panel.element);
    panel.tell();
    element.querySelector("h2").focus();
  }

  return { opener, element };
}

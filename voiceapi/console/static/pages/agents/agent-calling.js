// How an agent is called from outside: its triggers, with a line for a shell.

import { BASE } from "../../app/api.js";
import { items } from "../../builder/items.js";
import { copyable, facts, link } from "../../parts/components.js";
import { h } from "../../parts/dom.js";

const line = (path) =>
  `curl -X POST ${BASE}/public/agent/${path} -H "X-API-Key: $VOICEAPI_KEY" -H "Content-Type: application/json" -d '{"phone_number": "+12025550123", "initial_context": {}}'`;

/** `workflow`: as the API answers it; `definition`: as it is edited. */
export function calling(workflow, definition) {
  const triggers = items(definition, "nodes").map(({ item }) => item)
    .filter((node) => node.type === "trigger" && typeof node.data?.trigger_path === "string" && node.data.trigger_path);
  const isDraft = workflow.version_status === "draft";
  return h("div", { class: "stack" },
    h("p", {}, "Here is how a program of yours has this agent call somebody: by such a request, with an API key. These calls use the published version."),
    isDraft && h("p", { class: "quiet" }, "What you see is a draft: publish it, so that calls use it."),
    h("p", { class: "actions" }, link("Make an API key", "/settings/keys", { class: "button small" }), link("Call a list of people", "/campaigns/new", { class: "button small" }),
      link("Have it answer a number", "/carriers/connect", { class: "button small" })),
    h("h3", {}, "By the agent's own address"),
    copyable(line(`workflow/${workflow.workflow_uuid}`), "Copy the command"),
    triggers.map((node) => [
      h("h3", {}, `By the address “${node.data.trigger_path}”`),
      node.data.enabled === false && h("p", { class: "quiet" }, "This address is switched off."),
      copyable(line(node.data.trigger_path), "Copy the command"),
    ]),
    !triggers.length && h("p", { class: "quiet" }, "A step of the type “Call by request”, added on the drawing, gives the agent an address that you name."),
    facts([["Id", String(workflow.id)], ["UUID", workflow.workflow_uuid]]));
}

// Agents from a file, and from nothing. `create(body, talks)` makes one.

import { read, withoutPaths } from "../../builder/changes.js";
import { alert, button, field, fileDrop, form, input } from "../../parts/components.js";
import { h, show } from "../../parts/dom.js";

const START = { id: "start", type: "startCall", position: { x: 0, y: 0 }, data: { name: "Start", prompt: "Hello, how can I help you?" } };

export function fromNothing(create) {
  const name = input({ maxlength: "500" });
  const definition = { nodes: [START], edges: [] };
  const make = () => create({ name: name.value.trim(), workflow_definition: definition, workflow_configurations: { voice: "natural" } });
  return form("Make the agent", make,
    field("Name", name, { name: "name", required: true, help: "The agent begins with one step, which says hello. You add the others." }));
}

export function fromFile(create) {
  const result = h("div", { role: "status" });
  const take = async (file) => {
    try {
      const { name, definition, more } = read(await file.text(), file.name.replace(/\.json$/i, ""));
      const make = (workflow_definition) => create({ name, workflow_definition, ...more });
      try {
        await make(definition);
      } catch (error) {
        if (error.status !== 409) throw error;
        show(result, alert(error), button("Make it with trigger paths of its own", () => make(withoutPaths(definition))));
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      show(result, alert(error instanceof SyntaxError ? new Error(`${file.name} isn't JSON: ${error.message}`) : error));
    }
  };
  return h("div", { class: "stack" },
    fileDrop("Drop a definition here, or choose its file: JSON, as this service or Dograh exports it.", take, { accept: ".json,application/json" }), result);
}

// Talk to an agent: by text, by voice, or in a simulated call from or to it, and see why it says what it says.

import { api } from "../app/api.js";
import { keepQuery } from "../app/router.js";
import { looking } from "../builder/looking.js";
import { callout, facts, field, keyValues, link, section, tabs } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { chatPanel } from "./calls/chat-panel.js";
import { simulatedCalls } from "./calls/simulated-call.js";
import { inWords } from "./calls/turns.js";
import { isScriptedIn } from "./setup/model-settings.js";

const MODES = ["text", "from", "to"];
// What a run's gathered context holds besides what the conversation has found.
const OF_THE_SERVICE = new Set(["provider", "telephony_configuration_id", "telephony_configuration_name", "call_id",
  "conversation_id", "triggered_by", "trigger_uuid", "extracted_variables", "mapped_call_disposition"]);
// Variables that the service itself sets.
const BUILT_IN = /^(current_|phone_number$|caller_number$|called_number$|gathered_context|initial_context)/;

export default async function talk({ root, params: [id], query, signal, title }) {
  const [workflow, model] = await Promise.all([
    api.get(`/workflow/fetch/${encodeURIComponent(id)}`, { signal }),
    api.get("/organizations/model-configurations/v2", { signal }),
  ]);
  title(`Talk to ${workflow.name}`, [["Agents", "/agents"], [workflow.name, `/agents/${workflow.id}`]]);
  const graph = await looking(workflow.workflow_definition, { label: `Drawing of ${workflow.name}`, signal });
  const known = h("div", { "aria-live": "polite" });
  const context = contextOf(workflow);
  const shared = {
    workflow,
    signal,
    readContext: context.read,
    light: graph.light,
    variables: (found) => show(known, variablesView(found)),
  };
  const chat = chatPanel({
    ...shared,
    language: workflow.workflow_configurations?.language || "en-US",
    changed: (now) => keepQuery({ run: now.workflow_run_id }),
  });
  const calls = simulatedCalls(shared);
  let run = query.get("run");
  const modes = tabs("Ways to talk", [
    ["By text or voice", () => chat.element],
    ["It calls", calls.from],
    ["It is called", calls.to],
  ], {
    at: Math.max(0, MODES.indexOf(query.get("mode"))),
    chosen: (number) => {
      chat.stop();
      graph.light();
      shared.variables({});
      keepQuery({ mode: number ? MODES[number] : "", run: number ? "" : run });
      if (number === 0) {
        calls.stop();
        chat.tell();
      }
      context.element.hidden = number === 2;
    },
  });
  show(root,
    isScriptedIn(workflow, model) &&
      callout("No language model is configured, so answers follow words only. ", link("Choose a model", "/settings/models")),
    h("div", { class: "talk" },
      h("section", { class: "card", "aria-label": "Conversation" }, modes),
      h("div", { class: "stack talk-side" },
        section("Where it is", graph.element),
        section("What it knows", known),
        context.element)));
  if (run && !MODES.slice(1).includes(query.get("mode"))) {
    await chat.load(run).catch((error) => {
      if (![404, 422].includes(error.status)) throw error; // an address of a run that is no chat of this agent
      run = "";
      keepQuery({});
    });
  }
}

/** The initial variables: those that the definition names, and the workflow's own values. */
function contextOf(workflow) {
  const own = workflow.template_context_variables ?? {};
  const spoken = (workflow.workflow_definition?.nodes ?? []).filter((node) => !["webhook", "qa"].includes(node?.type));
  const named = [...JSON.stringify([spoken, workflow.workflow_definition?.edges]).matchAll(/\{\{\s*([A-Za-z_]\w*)/g)].map((found) => found[1]);
  const names = [...new Set(named)].filter((name) => !BUILT_IN.test(name) && !(name in own) && !found(workflow).has(name));
  const values = keyValues({ ...Object.fromEntries(names.map((name) => [name, ""])), ...own },
    { names: "Variable", contents: "Value", add: "Add a variable" });
  const element = section("Initial variables",
    field("Known before the conversation begins", values, { help: "They take effect with the next chat or call. One without a value is left out." }));
  const read = () => Object.fromEntries(Object.entries(values.read()).filter(([, value]) => value !== "")
    .map(([name, value]) => [name, typeof own[name] === "string" || !(name in own) ? value : parsed(value)]));
  return { element, read };
}

/** The names of the variables that a conversation finds out itself. */
function found(workflow) {
  const nodes = workflow.workflow_definition?.nodes ?? [];
  return new Set(nodes.flatMap((node) => node?.data?.extraction_variables ?? []).map((variable) => variable?.name));
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function variablesView(found) {
  const pairs = Object.entries(found).filter(([name]) => !OF_THE_SERVICE.has(name));
  if (!pairs.length) return h("p", { class: "empty" }, "Nothing yet.");
  return facts(pairs.map(([name, value]) => [name.replaceAll("_", " "), inWords(Array.isArray(value) ? value.join(", ") : value)]));
}

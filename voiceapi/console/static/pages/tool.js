// One tool: its form, and a trial.

import { api } from "../app/api.js";
import { Edited } from "../app/edited.js";
import { go } from "../app/router.js";
import {
  badge, button, code, confirm, facts, field, form, formWith, input, link, notify, section, select, stateBadge, table, textarea, words,
} from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { KINDS, toolFields } from "./setup/tool-forms.js";

export default async function toolPage({ root, params, query, signal, title }) {
  const isNew = params[0] === "new";
  const path = `/tools/${encodeURIComponent(params[0])}`;
  const [record, credentials] = await Promise.all([
    isNew ? null : Edited.read(path, signal),
    api.get("/credentials/", { signal }),
  ]);
  const tool = record?.value ?? { name: "", description: "", category: query.get("kind") ?? "http_api", definition: null };
  const [, kindName = tool.category] = KINDS.find(([kind]) => kind === tool.category) ?? [];
  title(isNew ? `New tool: ${kindName.toLowerCase()}` : tool.name, [["Tools", "/tools"]]);
  if (tool.category === "python") {
    show(root, ofTheApp(tool));
    return;
  }
  const name = input({ value: tool.name, maxlength: "255" });
  const description = textarea(tool.description, { rows: "3" });
  const fields = toolFields(tool.category, tool.definition, credentials);
  const save = async () => {
    const body = { name: name.value.trim(), description: description.value.trim(), definition: fields.read() };
    const saved = await (isNew ? api.post("/tools/", { body, signal }) : record.send("PUT", body));
    notify(isNew ? "The tool is made." : "The tool is saved.");
    go(`/tools/${saved.tool_uuid}`);
  };
  const asks = record?.asks("This tool was", () => go(`/tools/${tool.tool_uuid}`));
  const edit = formWith({ submit: isNew ? "Make the tool" : "Save", act: save, saves: signal, asks },
    field("Name", name, { name: "name", required: true }),
    field("When to use it", description, { name: "description", help: "For the language model, which reads this to decide: when it should use the tool, and for what." }),
    fields);
  show(root,
    isNew ? null : h("div", { class: "card" },
      facts([["What it does", kindName], ["State", stateBadge(tool.status)],
        ["Agents use it", ["where a step of theirs has it: ", link("open an agent", "/agents"), ", choose a step, and tick it there"]]]),
      h("div", { class: "actions" }, archiving(tool, path, signal))),
    section(isNew ? kindName : "Settings", edit,
      credentials.length ? null : h("p", { class: "quiet" }, "Does the server want a key or a password? ", link("Store it as a credential", "/settings/credentials"), ", then choose it here.")),
    !isNew && tool.category === "http_api" ? trial(tool, path, signal) : null);
}

/** A function of the app, which is changed there. */
function ofTheApp(tool) {
  const { parameters, timeout_seconds: timeout } = tool.definition.config;
  const found = Object.entries(parameters.properties).map(([name, schema]) => ({ name, ...schema }));
  return section("A function of your app",
    h("p", {}, tool.description),
    facts([["Its id, for steps that use it", tool.tool_uuid], ["It may take, at most", `${timeout} s`]]),
    table("What the agent gives it", [
      ["Name", (each) => each.name],
      ["Type", (each) => each.enum?.join(", ") ?? (each.items ? `list of ${each.items.format ?? each.items.type}` : each.format ?? each.type)],
      ["Required", (each) => (parameters.required.includes(each.name) ? "yes" : "")],
      ["Description", (each) => each.description],
    ], found, "It needs nothing."));
}

function archiving(tool, path, signal) {
  const archive = async () => {
    if (!(await confirm(`Archive “${tool.name}”? No agent can use it from now on.`, "Archive"))) return;
    await api.delete(path, { signal });
    notify("The tool is archived.");
    go(`/tools/${tool.tool_uuid}`);
  };
  const restore = async () => {
    await api.post(`${path}/unarchive`, { signal });
    notify("The tool is in use again.");
    go(`/tools/${tool.tool_uuid}`);
  };
  return tool.status === "archived" ? button("Use it again", restore, { kind: "primary" }) : button("Archive", archive, { kind: "danger" });
}

/** A value of a parameter's type from what was typed; what can't be one is sent as text, and the service says so. */
function typed(type, given) {
  if (type === "string") return given;
  try {
    return JSON.parse(given);
  } catch {
    return given;
  }
}

function trial(tool, path, signal) {
  const { parameters, preset_parameters: presets } = tool.definition.config;
  const controlOf = (each) => (each.type === "boolean"
    ? select([["", ""], ["true", "true"], ["false", "false"]], "") : input({ placeholder: each.type === "string" ? "" : `${each.type}, as JSON` }));
  const asked = (parameters ?? []).map((each) => [each, controlOf(each)]);
  const known = (presets ?? []).map((each) => [each, controlOf(each)]);
  const values = (pairs) => Object.fromEntries(pairs.filter(([, control]) => control.value !== "")
    .map(([each, control]) => [each.name, typed(each.type, control.value)]));
  const result = h("div", { class: "result", "aria-live": "polite" });
  const run = async () => {
    show(result, h("p", { class: "loading" }, "Asking…"));
    try {
      show(result, resultOf(await api.post(`${path}/test`, { body: { llm_params: values(asked), preset_params: values(known) }, signal })));
    } catch (error) {
      show(result);
      throw error;
    }
  };
  return section("Try it out",
    h("p", { class: "quiet" }, "The request is really sent, once, as the tool was saved last. Whatever the server does then, it does."),
    form("Send the request", run,
      h("div", { class: "fields" },
        asked.map(([each, control]) => field(each.name, control, { help: each.description, required: each.required })),
        known.map(([each, control]) => field(each.name, control, { help: `In place of ${each.value_template}, which only a call knows.` })))),
    result);
}

function resultOf(found) {
  return [
    h("h3", {}, "Result"),
    facts([
      ["Result", badge(found.status === "success" ? "it worked" : words(found.status), found.status === "success" ? "good" : "bad")],
      ["HTTP status", found.status_code === null ? null : String(found.status_code)],
      ["Error", found.error],
      ["What helps", found.hint],
      ["Took", `${found.duration_ms} ms`],
      ["Request", `${found.request_method} ${found.request_url}`],
    ]),
    found.data === null ? null : [h("h4", {}, "Answer"), code(found.data, "Answer of the server")],
    found.request_params && [h("h4", {}, "Query"), code(found.request_params, "Query of the request")],
    found.request_body && [h("h4", {}, "Body"), code(found.request_body, "Body of the request")],
    Object.keys(found.request_headers ?? {}).length > 0 && [h("h4", {}, "Headers"), code(found.request_headers, "Headers of the request")],
  ];
}

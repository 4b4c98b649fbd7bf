// The editor of an agent: its definition as a drawing with forms and JSON beside it, its settings, and how it is called.

import { api } from "../app/api.js";
import { Edited } from "../app/edited.js";
import { go } from "../app/router.js";
import { editor } from "../builder/editor.js";
import { lackingView, sorted } from "../builder/publish-requirements.js";
import { alert, badge, button, confirm, link, notify, showErrors, tabs } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { askBeforeLeaving } from "../parts/unsaved.js";
import { calling } from "./agents/agent-calling.js";
import { settingsForm } from "./agents/agent-settings.js";
import { talkDrawer } from "./calls/talk-drawer.js";

const SETTINGS = 1; // the tab's number

const path = (id) => `/workflow/${id}`;

/** What a node may refer to: tools, documents, credentials. */
async function references(signal) {
  const [tools, documents, credentials] = await Promise.all([
    api.get("/tools/", { signal }),
    api.get("/knowledge-base/documents", { signal }),
    api.get("/credentials/", { signal }),
  ]);
  return {
    tools: tools.map((each) => ({ value: each.tool_uuid, text: each.name })),
    documents: documents.documents.map((each) => ({ value: each.document_uuid, text: each.filename })),
    credentials: credentials.map((each) => ({ value: each.uuid, text: each.name })),
  };
}

const settingsOf = (workflow) => structuredClone({
  name: workflow.name,
  configurations: workflow.workflow_configurations ?? {},
  variables: workflow.template_context_variables ?? {},
});

export default async function agent({ root, params: [id], signal, title }) {
  const [record, types, choices] = await Promise.all([
    Edited.read(`/workflow/fetch/${id}`, signal), api.get("/node-types", { signal }), references(signal),
  ]);
  let workflow = record.value;
  let settings = settingsOf(workflow);
  let shown = 0; // which tab
  const state = h("p", { class: "actions agent-state", role: "status" });
  const trouble = h("div", { hidden: true });

  // -- what isn't saved

  const parts = () => {
    const before = settingsOf(workflow);
    const differs = (name) => JSON.stringify(settings[name]) !== JSON.stringify(before[name]);
    const body = {};
    if (!work.isSaved()) body.workflow_definition = work.definition();
    if (differs("configurations")) body.workflow_configurations = settings.configurations;
    if (differs("variables")) body.template_context_variables = settings.variables;
    if (differs("name")) body.name = settings.name;
    return body;
  };
  /** Those to check the definition with; undefined for those that are stored. */
  const configurations = () =>
    (JSON.stringify(settings.configurations) === JSON.stringify(workflow.workflow_configurations ?? {}) ? undefined : settings.configurations);
  const isUnsaved = () => Object.keys(parts()).length > 0;

  function showState() {
    const isDraft = workflow.version_status === "draft";
    show(state,
      badge(`${isDraft ? "Draft" : "Published"}, version ${workflow.version_number}`, isDraft ? "busy" : "good"),
      workflow.status === "archived" && badge("Archived"),
      isUnsaved() && badge("Not saved", "busy"));
    publish.hidden = !isDraft && !isUnsaved();
  }

  /** Show a workflow as the service has it. `sent`: the definition that it took; null to show its own instead of what is here. */
  function accept(answer, sent) {
    workflow = answer;
    settings = settingsOf(workflow);
    title(workflow.name);
    if (sent) work.store(sent, workflow.workflow_definition);
    else work.replace(workflow.workflow_definition);
    if (shown !== 0) views.open(shown);
    showState();
  }

  function warn(...children) {
    trouble.hidden = children.length === 0;
    show(trouble, ...children);
    trouble.scrollIntoView({ block: "nearest" });
  }

  // -- requests

  /** Send a change with the tag; when somebody else was quicker, ask what is to be done. True if it is done. */
  async function send(method, where, body, insist = "Do it all the same") {
    warn();
    try {
      return await record.send(method, body, where);
    } catch (error) {
      if (error.status !== 412) throw error;
      warn(record.question("This agent was", async () => {
        await finish(null, null);
        warn();
      }, async () => {
        try {
          const sent = body?.workflow_definition ?? work.saved();
          await finish(await send(method, where, body), sent);
          notify("Done.");
        } catch (failure) {
          if (failure.name === "AbortError") throw failure;
          showRefusal(failure);
        }
      }, insist));
      return null;
    }
  }

  /** Show the workflow of an answer, or else as it is stored. */
  async function finish(answer, sent) {
    if (!answer?.workflow_definition) await record.reload();
    accept(answer?.workflow_definition ? answer : record.value, sent);
  }

  function showRefusal(error) {
    const errors = error.detail?.errors;
    if (errors) {
      const { lacking, broken } = sorted(errors);
      if (broken.length) work.showErrors(broken);
      warn(
        broken.length > 0 && alert(new Error(`This can't be done while the agent has ${broken.length === 1 ? "an error" : "errors"}: see below the drawing.`)),
        lacking.length > 0 && lackingView(lacking, id, button("Change what is demanded", () => views.open(SETTINGS))));
      return;
    }
    if (error.items?.length && shown === SETTINGS) showErrors(settingsBox, error);
    warn(alert(error));
  }

  async function save() {
    const body = parts();
    if (!Object.keys(body).length) {
      notify("There is nothing to save.");
      return true;
    }
    try {
      const done = await send("PUT", path(id), body, "Save mine over it");
      if (!done) return false;
      accept(done, body.workflow_definition ?? work.saved());
      notify(body.workflow_definition || body.workflow_configurations || body.template_context_variables ? "Saved as the draft." : "Saved.");
      return true;
    } catch (error) {
      if (error.name === "AbortError") throw error;
      showRefusal(error);
      return false;
    }
  }

  const publish = button("Publish", async () => {
    if (isUnsaved() && !(await save())) return;
    if (workflow.version_status !== "draft") return;
    try {
      const done = await send("POST", `${path(id)}/publish`, undefined, "Publish what is stored");
      if (!done) return;
      await finish(done, work.saved());
      notify(`Version ${done.version_number} is published: calls use it from now on.`);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      showRefusal(error);
    }
  });

  async function setStatus(status) {
    const done = await send("PUT", `${path(id)}/status`, { status });
    if (!done) return;
    workflow.status = done.status;
    showState();
    showStatusButton();
    notify(status === "archived" ? "Archived: nobody is called by it any more." : "The agent is active again.");
  }

  const statusBox = h("span");
  function showStatusButton() {
    show(statusBox, workflow.status === "archived"
      ? button("Make active again", () => setStatus("active"))
      : button("Archive", async () => {
        if (await confirm(`Archive “${workflow.name}”? Calls to it and by it are refused until it is active again.`, "Archive")) await setStatus("archived");
      }, { kind: "danger" }));
  }

  // -- the page

  const work = await editor({
    definition: workflow.workflow_definition,
    name: () => settings.name,
    workflowId: workflow.id,
    types: types.node_types,
    choices,
    configurations,
    changed: () => showState(),
    save,
    signal,
  });
  if (signal.aborted) return;
  const settingsBox = h("div");
  const views = tabs("What is shown of the agent", [
    ["Drawing", () => work.element],
    ["Settings", () => {
      show(settingsBox, h("p", { class: "form-alert", role: "alert", hidden: true }), settingsForm(settings, () => {
        showState();
        if (configurations()) work.check();
      }));
      return settingsBox;
    }],
    ["Calling it", () => calling(workflow, work.definition())],
  ], { chosen: (at) => { shown = at; } });

  const drawer = talkDrawer({ workflow: () => workflow, signal, light: work.light, save: async () => !isUnsaved() || save() });

  askBeforeLeaving(signal, isUnsaved, save);
  title(workflow.name, [["Agents", "/agents"]]);
  show(root,
    h("div", { class: "agent-head" }, state,
      h("div", { class: "actions" },
        button("Save", save, { kind: "primary" }), publish,
        link("Talk", `/agents/${id}/talk`, { class: "button" }), drawer.opener,
        link("Tests", `/agents/${id}/tests`, { class: "button" }),
        link("Versions", `/agents/${id}/versions`, { class: "button" }),
        link("Insights", `/agents/${id}/insights`, { class: "button" }),
        button("Duplicate", async () => {
          const made = await api.post(`${path(id)}/duplicate`, { signal });
          notify(`“${made.name}” is a copy of what is stored, with trigger paths of its own.`);
          go(`/agents/${made.id}`);
        }),
        statusBox)),
    trouble,
    h("div", { class: "beside-drawer" }, h("section", { class: "card", "aria-label": "Agent" }, views), drawer.element));
  showStatusButton();
  showState();
}

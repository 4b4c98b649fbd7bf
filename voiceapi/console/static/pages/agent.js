// The editor of an agent: its definition as a drawing with forms and JSON beside it, its settings, and how it is called.

import { api } from "../app/api.js";
import { Edited } from "../app/edited.js";
import { go } from "../app/router.js";
import { differing } from "../builder/differing.js";
import { draft, edited, savesItself } from "../builder/draft.js";
import { editor } from "../builder/editor.js";
import { nameOf } from "../builder/items.js";
import { memberName, nodeTypes } from "../builder/plain.js";
import { lackingView, sorted } from "../builder/publish-requirements.js";
import { alert, badge, button, callout, confirm, link, notify, showErrors, tabs } from "../parts/components.js";
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

// What is said of a state of saving, beside its badge.
const UNREACHABLE = "Not saved: the service doesn't answer.";
const SAYS = {
  unsaved: () => badge("Not saved", "busy"),
  saving: () => "Saving…",
  saved: () => "Saved.",
  unreachable: () => `${UNREACHABLE} ${savesItself() ? "Trying again; nothing" : "Nothing"} is lost here.`,
  differing: () => badge("Not saved: choose what differs", "busy"),
};

/** The node that a refused change is about: {id, name}, or null. */
function nodeOf({ detail, items }, definition) {
  const id = detail?.errors?.find(({ kind, id: each }) => kind === "node" && each !== null)?.id;
  const [, index] = items[0]?.loc.join(".").match(/workflow_definition\.nodes\.(\d+)/) ?? [];
  const found = id === undefined ? definition.nodes?.[index] : definition.nodes?.find((node) => String(node?.id) === id);
  return found ? { id: String(found.id), name: nameOf(found) } : null;
}

export default async function agent({ root, params: [id], query, signal, title }) {
  const [record, types, choices] = await Promise.all([
    Edited.read(`/workflow/fetch/${id}`, signal), nodeTypes(signal), references(signal),
  ]);
  let workflow = record.value;
  const settings = settingsOf(workflow);
  let shown = 0; // which tab
  let elsewhere = 0; // in how many other tabs of the browser it is open
  const state = h("p", { class: "actions agent-state", role: "status" });
  const trouble = h("div", { hidden: true });
  const offer = h("div", { class: "callout offer", role: "status" });

  let saying = null; // a state of saving, and its error

  /** Those to check the definition with; undefined for those that are stored. */
  const configurations = () =>
    (JSON.stringify(settings.configurations) === JSON.stringify(workflow.workflow_configurations ?? {}) ? undefined : settings.configurations);

  function showState() {
    const isDraft = workflow.version_status === "draft";
    show(state,
      badge(`${isDraft ? "Draft" : "Published"}, version ${workflow.version_number}`, isDraft ? "busy" : "good"),
      workflow.status === "archived" && badge("Archived"),
      elsewhere > 0 && badge(elsewhere === 1 ? "Open in another tab, too" : `Open in ${elsewhere} other tabs, too`),
      h("span", { class: "quiet" }, isDraft ? "not used in calls yet" : "used in calls"),
      saying && h("span", { class: "saying" }, saying.state === "refused" ? refusal(saying.error) : SAYS[saying.state]()));
    publish.hidden = !isDraft && !saves.isUnsaved();
  }

  function refusal(error) {
    const node = nodeOf(error, work.definition());
    return [`Not saved: ${error.detail?.errors?.[0]?.message ?? error.message} `, node && button(node.name, () => {
      views.open(0);
      work.open("nodes", node.id);
    }, { kind: "small" })];
  }

  /** Show a workflow as the service has it, beside what was changed since `sent`. */
  function took(sent, answer) {
    const before = settingsOf(sent);
    const after = settingsOf(answer);
    for (const name of Object.keys(after)) if (JSON.stringify(settings[name]) === JSON.stringify(before[name])) settings[name] = after[name];
    work.store(sent.workflow_definition, answer.workflow_definition);
    showStored(answer);
  }

  function showStored(answer) {
    workflow = answer;
    title(workflow.name);
    showStatusButton();
    // While something is typed, the form stays as it is.
    if (shown !== 0 && !settingsBox.contains(document.activeElement)) views.open(shown);
    showState();
  }

  function warn(...children) {
    trouble.hidden = children.length === 0;
    show(trouble, ...children);
    trouble.scrollIntoView({ block: "nearest" });
  }

  // -- requests

  async function save() {
    warn();
    const isStored = await saves.save();
    if (isStored) notify(workflow.version_status === "draft" ? "Saved as the draft." : "Saved.");
    else if (saying.error) showRefusal(saying.error);
    else trouble.scrollIntoView({ block: "nearest" });
    return isStored;
  }

  /** Ask for a change of what is stored. null if that was changed elsewhere meanwhile, which is shown. */
  async function send(method, where, body) {
    warn();
    try {
      const answer = await record.send(method, body, where);
      saves.announce();
      return answer;
    } catch (error) {
      if (error.status !== 412) throw error;
      if (await saves.join()) warn(callout("This agent was changed elsewhere. That is shown now, and nothing else was done yet."));
      return null;
    }
  }

  function showRefusal(error) {
    const errors = error.detail?.errors;
    if (errors) {
      const { lacking, broken } = sorted(errors);
      if (broken.length) work.showErrors(broken);
      warn(
        broken.length > 0 && alert(new Error(`This can't be done while the agent has ${broken.length === 1 ? "an error" : "errors"}: see below the drawing.`)),
        lacking.length > 0 && lackingView(lacking, id, button("Change what is required", () => views.open(SETTINGS))));
      return;
    }
    if (error.items?.length && shown === SETTINGS) showErrors(settingsBox, error);
    warn(alert(error));
  }

  const publish = button("Publish", async () => {
    if (!(await saves.save())) {
      if (saying.error) showRefusal(saying.error);
      return;
    }
    if (workflow.version_status !== "draft") return;
    try {
      const done = await send("POST", `${path(id)}/publish`);
      if (!done) return;
      await record.reload();
      took(saves.base(), record.value);
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

  /** What a member that differs is called. */
  function memberOf({ member, list, item, path }) {
    if (path[0] === "position") return "its place";
    const spec = list === "nodes" && types.find(({ name }) => name === item.type);
    const found = spec && path[0] === "data" && spec.properties.find(({ name }) => name === path[1]);
    if (found) return [found.display_name, ...path.slice(2)].join(", ");
    return memberName(list || member === "name" ? path : [member, ...path]);
  }

  // -- the page

  const work = await editor({
    definition: workflow.workflow_definition,
    name: () => settings.name,
    workflowId: workflow.id,
    types,
    choices,
    configurations,
    changed: () => saves.changed(),
    save,
    signal,
  });
  if (signal.aborted) return;
  const saves = draft({
    id,
    record,
    signal,
    notify,
    now: () => ({
      name: settings.name,
      workflow_definition: work.definition(),
      workflow_configurations: structuredClone(settings.configurations),
      template_context_variables: structuredClone(settings.variables),
    }),
    base: () => ({ ...edited(workflow), workflow_definition: work.saved() }),
    took,
    show(label, value, answer) {
      Object.assign(settings, settingsOf(value));
      trouble.hidden = true; // what was to be chosen before is joined now
      work.join(label, value.workflow_definition, answer?.workflow_definition);
      showStored(answer ?? workflow);
    },
    ask(conflicts, act) {
      trouble.hidden = false; // not scrolled to: somebody may be typing
      show(trouble, differing(conflicts, memberOf, async (ids) => {
        warn();
        await act(ids);
      }));
    },
    say(is, error) {
      saying = { state: is, error };
      showState();
    },
    others(count) {
      elsewhere = count;
      showState();
    },
  });
  const settingsBox = h("div");
  const views = tabs("What is shown of the agent", [
    ["Drawing", () => work.element],
    ["Settings", () => {
      show(settingsBox, h("p", { class: "form-alert", role: "alert", hidden: true }), settingsForm(settings, () => {
        saves.changed();
        if (configurations()) work.check();
      }));
      return settingsBox;
    }],
    ["Programs", () => calling(workflow, work.definition())],
  ], { chosen: (at) => { shown = at; }, name: "tab" });

  const drawer = talkDrawer({ workflow: () => workflow, signal, light: work.light, save: async () => !saves.isUnsaved() || save() });

  askBeforeLeaving(signal, saves.isUnsaved, saves.save, { isItself: savesItself, drop: saves.drop });
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
    offer,
    trouble,
    h("div", { class: "beside-drawer" }, h("section", { class: "card", "aria-label": "Agent" }, views), drawer.element));
  showStatusButton();
  showState();
  const step = query.get("step");
  if (step !== null && !work.open("nodes", step)) warn(callout(`The step “${step}” isn't in this agent any more.`));
  const kept = saves.offer();
  if (kept) {
    const answer = (text, act, kind) => button(text, () => {
      show(offer);
      act();
    }, { kind });
    const time = kept.at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    show(offer, h("p", {}, `Changes from ${time} weren't saved. Restore them, or drop them.`),
      h("div", { class: "actions" }, answer("Restore them", kept.restore, "primary"), answer("Drop them", kept.drop, "")));
  }
}

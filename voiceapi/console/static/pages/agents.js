// The list of agents, and new ones: from a template, an example, a file, or from nothing.

import { api } from "../app/api.js";
import { go, keepQuery } from "../app/router.js";
import { read, withoutPaths } from "../builder/changes.js";
import { looking } from "../builder/looking.js";
import { alert, button, confirm, emptyState, field, fileDrop, form, formWith, input, instant, link, notify, section, select, stateBadge, table, tabs, textarea } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { oneAfterAnother } from "../parts/unsaved.js";

export default async function agents({ root, query, signal, title }) {
  title("Agents");
  let all = await api.get("/workflow/fetch", { signal });
  const wanted = { search: query.get("search") ?? "", status: query.get("status") ?? "active" };
  const list = h("div", { "aria-live": "polite" });
  const search = input({ type: "search", value: wanted.search, placeholder: "Name or id" });
  const status = select([["active", "Active"], ["archived", "Archived"], ["", "All"]], wanted.status);
  const maker = h("div", { hidden: true });
  const more = button("New agent", openMaker, { kind: "primary" });

  function openMaker() {
    if (maker.hidden) show(maker, newAgent(signal));
    maker.hidden = false;
    maker.querySelector("[role=tab]").focus();
  }

  function showList() {
    wanted.search = search.value.trim();
    wanted.status = status.value;
    keepQuery({ search: wanted.search, status: wanted.status === "active" ? "" : wanted.status || "all" });
    const words = wanted.search.toLocaleLowerCase();
    const found = all
      .filter((each) => !wanted.status || each.status === wanted.status)
      .filter((each) => !words || each.name.toLocaleLowerCase().includes(words) || String(each.id) === words || each.workflow_uuid === words)
      .toReversed();
    show(list, table("Agents", [
      ["Name", (each) => link(each.name, `/agents/${each.id}`)],
      ["State", (each) => stateBadge(each.status)],
      ["Runs", (each) => String(each.total_runs), { number: true }],
      ["Made", (each) => instant(each.created_at)],
      ["Actions", (each) => h("div", { class: "actions" },
        link("Talk", `/agents/${each.id}/talk`, { class: "button small", "aria-label": `Talk to ${each.name}` }),
        button("Duplicate", () => duplicate(each), { kind: "small", "aria-label": `Duplicate ${each.name}` }),
        each.status === "active"
          ? button("Archive", () => archive(each), { kind: "small danger", "aria-label": `Archive ${each.name}` })
          : button("Make active", () => setStatus(each, "active"), { kind: "small", "aria-label": `Make ${each.name} active` }))],
    ], found, all.length
      ? emptyState("No agent is like that.", button("Show all", () => {
        search.value = "";
        status.value = "";
        showList();
      }))
      : emptyState("There are no agents yet. Make one above: from a template, an example, a file, or from nothing.")));
  }

  async function setStatus(each, value) {
    await api.put(`/workflow/${each.id}/status`, { body: { status: value }, signal });
    all = await api.get("/workflow/fetch", { signal });
    showList();
    notify(value === "archived" ? `“${each.name}” is archived.` : `“${each.name}” is active again.`);
  }

  async function archive(each) {
    if (await confirm(`Archive “${each.name}”? Calls to it and by it are refused until it is active again.`, "Archive")) await setStatus(each, "archived");
  }

  async function duplicate(each) {
    const made = await api.post(`/workflow/${each.id}/duplicate`, { signal });
    notify(`“${made.name}” was made.`);
    go(`/agents/${made.id}`);
  }

  search.addEventListener("input", showList);
  status.addEventListener("change", showList);
  if (wanted.status === "all") status.value = "";
  show(root,
    h("div", { class: "actions" }, more),
    maker,
    h("section", { class: "card", "aria-label": "List of agents" },
      h("div", { class: "fields" }, field("Search", search), field("State", status)), list));
  showList();
  if (!all.length || query.get("new") !== null) openMaker();
}

/** The ways to make an agent. */
function newAgent(signal) {
  const next = oneAfterAnother(signal);
  return section("New agent", tabs("How to begin", [
    ["From a template", () => fromTemplate(next())],
    ["From an example", () => fromExample(next())],
    ["From a file", () => fromFile(next())],
    ["From nothing", () => fromNothing(next())],
  ]));
}

/** Make an agent; `more` is what may come with it: `workflow_configurations`, `tools` and `cases`. */
async function create(name, definition, signal, more = {}) {
  const made = await api.post("/workflow/create/definition", { body: { name, workflow_definition: definition, ...more }, signal });
  go(`/agents/${made.id}`);
}

function fromTemplate(signal) {
  const callType = select([["inbound", "It answers calls"], ["outbound", "It calls people"]], "inbound");
  const useCase = input({ placeholder: "Appointments of a bicycle workshop" });
  const activity = textarea("", { placeholder: "Find out what is broken, and agree on a day this week." });
  const make = async () => {
    const body = { call_type: callType.value, use_case: useCase.value.trim(), activity_description: activity.value.trim() };
    const made = await api.post("/workflow/create/template", { body, signal });
    go(`/agents/${made.id}`);
  };
  return formWith({ submit: "Make the agent", act: make, saves: signal },
    field("Direction", callType, { name: "call_type" }),
    field("What it is about", useCase, { name: "use_case", help: "In a few words: it becomes the agent's name." }),
    field("What it is to do", activity, { name: "activity_description", help: "What you would tell a new colleague." }));
}

function fromExample(signal) {
  const box = h("div", { class: "stack" }, h("p", { class: "loading" }, "Loading…"));
  const load = async () => {
    const examples = await api.get("/workflow/examples", { signal });
    const choice = select(examples.map((each, at) => [String(at), each.name]), "0");
    const drawn = h("div", { class: "preview" });
    const preview = async () => {
      const { name, workflow_definition } = examples[Number(choice.value)];
      const view = await looking(workflow_definition, { label: `Drawing of ${name}`, signal });
      show(drawn, view.element);
    };
    choice.addEventListener("change", () => preview().catch((error) => show(drawn, alert(error))));
    show(box, form("Make the agent", () => {
      const { name, workflow_definition, ...more } = examples[Number(choice.value)];
      return create(name, workflow_definition, signal, more);
    }, field("Example", choice), drawn));
    await preview();
  };
  load().catch((error) => show(box, alert(error)));
  return box;
}

function fromNothing(signal) {
  const name = input({ maxlength: "500" });
  const start = { id: "start", type: "startCall", position: { x: 0, y: 0 }, data: { name: "Start", prompt: "Hello, how can I help you?" } };
  const make = () => create(name.value.trim(), { nodes: [start], edges: [] }, signal, { workflow_configurations: { voice: "natural" } });
  return formWith({ submit: "Make the agent", act: make, saves: signal },
    field("Name", name, { name: "name", required: true, help: "The agent begins with one node, which says hello. You add the others." }));
}

function fromFile(signal) {
  const result = h("div", { role: "status" });
  const take = async (file) => {
    try {
      const { name, definition, more } = read(await file.text(), file.name.replace(/\.json$/i, ""));
      try {
        await create(name, definition, signal, more);
      } catch (error) {
        if (error.status !== 409) throw error;
        show(result, alert(error), button("Make it with trigger paths of its own", () => create(name, withoutPaths(definition), signal, more)));
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      show(result, alert(error instanceof SyntaxError ? new Error(`${file.name} isn't JSON: ${error.message}`) : error));
    }
  };
  return h("div", { class: "stack" },
    fileDrop("Drop a definition here, or choose its file: JSON, as this service or Dograh exports it.", take, { accept: ".json,application/json" }), result);
}

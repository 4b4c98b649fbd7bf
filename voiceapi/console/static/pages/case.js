// A test of an agent, a conversation: written by a form or as JSON, tried out as it stands, and stored.

import { ApiError, api } from "../app/api.js";
import { Edited } from "../app/edited.js";
import { go } from "../app/router.js";
import { keepResult } from "../app/tested.js";
import { button, checkbox, confirm, field, link, notify, showErrors, textarea } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { askBeforeLeaving } from "../parts/unsaved.js";
import { versionChoice } from "./agents/version-choice.js";
import { caseResult, counted } from "./cases/case-dialogue.js";
import { caseForm } from "./cases/case-form.js";

const NEW = { name: "", turns: [{ caller: "" }] };
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

const wrong = (place, msg) => new ApiError(422, [{ loc: ["body", ...place], msg }]);

/** Refuse what the form can't show. */
function checkShape(data) {
  if (!isObject(data)) throw wrong(["case"], "A case is an object.");
  for (const name of ["opening", "expect"]) if ((data[name] ?? null) !== null && !isObject(data[name])) throw wrong(["case"], `${name}: it must be an object.`);
  if ((data.turns ?? null) !== null && !(Array.isArray(data.turns) && data.turns.every(isObject))) throw wrong(["case"], "turns: it must be a list of objects.");
}

export default async function testCase({ root, params: [agentId, caseId], signal, title }) {
  const isNew = caseId === "new";
  const path = `/workflow/${encodeURIComponent(agentId)}`;
  const here = isNew ? `${path}/cases` : `${path}/cases/${encodeURIComponent(caseId)}`;
  const [agent, version, record] = await Promise.all([
    api.get(`/workflow/fetch/${encodeURIComponent(agentId)}`, { signal }),
    versionChoice(agentId, signal),
    isNew ? null : Edited.read(here, signal),
  ]);
  const stored = record?.value ?? { case: NEW, enabled: true };
  const tests = `/agents/${agent.id}/tests`;
  const name = (text) => title(isNew ? "New test" : text, [["Agents", "/agents"], [agent.name, `/agents/${agent.id}`], ["Tests", tests]]);
  const box = h("div");
  const enabled = checkbox(stored.enabled);
  const summary = h("p", { role: "status" });
  const result = h("div", { class: "stack" });
  const question = h("div");
  const form = h("div", {}, h("p", { class: "form-alert", role: "alert", hidden: true }), question, box);
  let shown = null; // {read}: the form or the JSON

  const showForm = (data) => {
    shown = caseForm(data, version.chosen().workflow_json);
    show(box, shown);
  };
  const showJson = (data) => {
    const text = textarea(JSON.stringify(data, null, 2), { rows: "30", class: "code json", spellcheck: "false" });
    shown = { read: () => {
      try {
        return JSON.parse(text.value);
      } catch (error) {
        throw wrong(["case"], `This isn't JSON: ${error.message}.`);
      }
    } };
    show(box, field("The test as JSON", text, { name: "case", help: "As a file of tests has it, in its list “cases”." }));
  };
  const json = button("JSON", () => {
    const isJson = json.getAttribute("aria-pressed") !== "true";
    if (!attempt(() => {
      const data = shown.read();
      if (isJson) showJson(data);
      else {
        checkShape(data);
        showForm(data);
      }
    })) return;
    json.setAttribute("aria-pressed", String(isJson));
  }, { "aria-pressed": "false" });

  /** Do it, and show at the fields why it can't be done. */
  function attempt(act) {
    showErrors(form, null);
    try {
      act();
      return true;
    } catch (error) {
      showErrors(form, error);
      return false;
    }
  }

  const state = () => {
    try {
      return JSON.stringify([shown.read(), enabled.checked]);
    } catch {
      return null; // JSON that can't be read: nobody has stored that
    }
  };
  let before;
  const isUnsaved = () => state() !== before;

  /** Send what is shown; an error of the service about the case is shown where it belongs. */
  async function send(act) {
    showErrors(form, null);
    show(question);
    try {
      return await act(shown.read());
    } catch (error) {
      if (error.name === "AbortError") throw error;
      if (error.status === 412) {
        show(question, record.question("This case was", () => go(`${tests}/${stored.id}`), save));
        question.scrollIntoView({ block: "nearest" });
        return null;
      }
      const items = error.status === 409 ? [{ loc: ["body", "case", "name"], msg: error.message }]
        : (error.items ?? []).map((item) => (item.loc[1] === "cases" ? { ...item, loc: ["body", "case", ...item.loc.slice(3)] } : item));
      showErrors(form, items.length ? Object.assign(new Error(error.message), { items }) : error);
      return null;
    }
  }

  async function save() {
    const done = await send((data) => {
      const body = { case: data, enabled: enabled.checked };
      return isNew ? api.post(here, { body, signal }) : record.send("PUT", body);
    });
    if (!done) return false;
    before = state();
    stored.name = done.name;
    keepResult(agent.id, done.id, null);
    notify(`“${done.name}” is saved.`);
    if (isNew) go(`${tests}/${done.id}`);
    else name(done.name);
    return true;
  }

  async function tryOut() {
    show(summary, "The test is run…");
    show(result);
    const tested = version.chosen();
    const answer = await send((data) => api.post(`${path}/test`, { body: { version: tested.version_number, cases: [data] }, signal }));
    show(summary, answer && `${counted(answer.passed, answer.failed)} Version ${tested.version_number}, ${tested.status}.`);
    if (!answer) return;
    if (!isNew && !isUnsaved()) keepResult(agent.id, stored.id, answer.results[0]);
    const view = caseResult(answer.results[0]);
    view.open = true;
    show(result, view);
    summary.scrollIntoView({ block: "nearest" });
  }

  async function remove() {
    if (!(await confirm(`Delete the test “${stored.name}”?`, "Delete"))) return;
    await api.delete(here, { signal });
    keepResult(agent.id, stored.id, null);
    before = state();
    notify(`“${stored.name}” is deleted.`);
    go(tests);
  }

  try {
    checkShape(stored.case);
    showForm(stored.case);
  } catch {
    showJson(stored.case); // such as a single turn that isn't in a list
    json.setAttribute("aria-pressed", "true");
  }
  before = state();
  askBeforeLeaving(signal, isUnsaved, save);
  name(stored.name);
  show(root,
    h("div", { class: "agent-head" },
      h("div", { class: "actions" },
        button("Save", save, { kind: "primary" }), button("Run it", tryOut), json,
        link("All tests", tests, { class: "button" }),
        !isNew && button("Delete", remove, { kind: "danger" })),
      field("Version to test", version.control)),
    h("div", { class: "run" },
      h("section", { class: "card", "aria-label": "Test" }, form, field("Run it with the other tests, and before publishing", enabled, { name: "enabled" })),
      h("section", { class: "card", "aria-label": "Result" }, h("h2", {}, "Result"),
        h("p", { class: "help" }, "Press Run it to see the conversation, and whether it is as you expect. It runs as it is written here, saved or not, and nobody is called."), summary, result)));
}

// The tests of an agent, each a conversation: run together or alone, with what they touch of it, and added, switched off, deleted.

import { api } from "../app/api.js";
import { keepResult, keepTest, lastResult, lastTest } from "../app/tested.js";
import { testMarks } from "../builder/overlays.js";
import {
  alert, badge, button, confirm, details, emptyState, field, fileDrop, instant, link, notify, section, table,
} from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { versionChoice } from "./agents/version-choice.js";
import { caseResult, counted } from "./cases/case-dialogue.js";
import { coverageView } from "./cases/coverage.js";

export default async function tests({ root, params: [id], signal, title }) {
  const path = `/workflow/${encodeURIComponent(id)}`;
  const [agent, version] = await Promise.all([api.get(`/workflow/fetch/${encodeURIComponent(id)}`, { signal }), versionChoice(id, signal)]);
  title(`Tests of ${agent.name}`, [["Agents", "/agents"], [agent.name, `/agents/${agent.id}`]]);
  let cases = [];
  const list = h("div");
  const summary = h("p", { role: "status" });
  const results = h("div", { class: "stack" });
  const covered = h("div");
  const taken = h("div", { role: "status" });
  const runAll = button("Run all tests", () => run(), { kind: "primary" });

  async function load() {
    cases = await api.get(`${path}/cases`, { signal });
    runAll.disabled = !cases.some((each) => each.enabled);
    showList();
  }

  const showList = () => show(list, table("Tests", [
    ["Name", (each) => link(each.name, `/agents/${agent.id}/tests/${each.id}`)],
    ["Run with the others", (each) => (each.enabled ? badge("yes", "good") : badge("no"))],
    ["Last result", (each) => last(lastResult(agent.id, each.id))],
    ["Actions", (each) => h("div", { class: "actions" },
      button("Run", () => run([each.id]), { kind: "small", "aria-label": `Run “${each.name}”` }),
      button(each.enabled ? "Switch off" : "Switch on", () => toggle(each), { kind: "small", "aria-label": `Switch “${each.name}” ${each.enabled ? "off" : "on"}` }),
      button("Delete", () => remove(each), { kind: "small danger", "aria-label": `Delete “${each.name}”` }))],
  ], cases, emptyState("This agent has no tests yet. A test is a conversation that the agent should hold as you expect it. Write one, or make one of a call that went well.",
    link("Write a test", `/agents/${agent.id}/tests/new`, { class: "button" }),
    link("Look at its calls", `/runs?workflow=${agent.id}`, { class: "button" }))));

  const last = (result) => (result
    ? [result.passed ? badge("passed", "good") : badge("failed", "bad"), " ", instant(result.at)]
    : h("span", { class: "quiet" }, "not run yet in this tab"));

  async function toggle(each) {
    await api.put(`${path}/cases/${each.id}`, { body: { enabled: !each.enabled }, signal });
    notify(each.enabled ? `“${each.name}” isn't run any more with the others.` : `“${each.name}” is run again with the others.`);
    await load();
  }

  async function remove(each) {
    if (!(await confirm(`Delete the test “${each.name}”?`, "Delete"))) return;
    await api.delete(`${path}/cases/${each.id}`, { signal });
    keepResult(agent.id, each.id, null);
    notify(`“${each.name}” is deleted.`);
    await load();
  }

  // -- running them

  /** Run these cases, or all that are on. */
  async function run(ids = null) {
    const tested = version.chosen();
    show(summary, ids ? "The test is run…" : "The tests are run…");
    try {
      const answer = await api.post(`${path}/test`, { body: { version: tested.version_number, ...(ids ? { case_ids: ids } : {}) }, signal });
      for (const result of answer.results) keepResult(agent.id, result.case_id, result);
      const test = { ...answer, version: tested, isWhole: ids === null };
      if (test.isWhole) keepTest(agent.id, test);
      await showTest(test);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      show(summary);
      show(results, alert(error), h("p", {}, link("Go to the agent", `/agents/${agent.id}`)));
      show(covered);
    }
    showList();
  }

  async function showTest(test) {
    const { passed, failed, coverage, version: tested } = test;
    show(summary, counted(passed, failed), ` Version ${tested.version_number}, ${tested.status}.`);
    const failures = test.results.filter((result) => !result.passed);
    const successes = test.results.filter((result) => result.passed);
    const view = (result) => caseResult(result, cases.some((each) => each.id === result.case_id)
      ? link("Change this test", `/agents/${agent.id}/tests/${result.case_id}`, { class: "button small", "aria-label": `Change the test “${result.name}”` }) : null);
    show(results, failures.map(view), successes.length > 1 && failures.length
      ? details(`${successes.length} passed`, successes.map(view)) : successes.map(view));
    const marks = testMarks(coverage, test.results);
    const touched = await coverageView({ coverage, definition: tested.workflow_json, marks, signal });
    show(covered, section("Which parts of the agent the tests reach",
      !test.isWhole && h("p", { class: "quiet" }, "By this test alone. Run all tests to see what they reach together."),
      touched));
  }

  // -- a file of cases

  async function take(file) {
    try {
      const text = await file.text();
      const send = (replace) => api.post(`${path}/cases/file`, { body: { file: text, replace }, signal });
      let answer;
      try {
        answer = await send(false);
      } catch (error) {
        if (error.status !== 409) throw error;
        if (!(await confirm(`${error.message.replace(/ With replace.*/, "")} Replace them?`, "Replace"))) return;
        answer = await send(true);
      }
      for (const each of answer.cases) keepResult(agent.id, each.id, null);
      const { length } = answer.cases;
      show(taken, answer.tools_left_out > 0 && h("p", {}, "The tools in the file aren't taken: the agent has its own."));
      notify(`${length === 1 ? "One test is" : `${length} tests are`} taken from ${file.name}.`);
    } catch (error) {
      if (error.name === "AbortError") return;
      show(taken, alert(error));
    }
    await load();
  }

  show(root,
    h("div", { class: "agent-head" },
      field("Version to test", version.control),
      h("div", { class: "actions" }, runAll,
        link("Write a test", `/agents/${agent.id}/tests/new`, { class: "button" }),
        link("Practice callers", `/agents/${agent.id}/callers`, { class: "button" }),
        link("Play past calls again", `/agents/${agent.id}/replay`, { class: "button" }))),
    h("section", { class: "card", "aria-label": "Tests" }, list),
    h("section", { class: "card", "aria-label": "Results" }, h("h2", {}, "Results"), summary, results),
    covered,
    section("Tests from a file", fileDrop("Drop a file of tests here, or choose it: YAML or JSON.", take, { accept: ".yaml,.yml,.json" }), taken));
  await load();
  const before = lastTest(agent.id);
  if (before) await showTest(before);
  else show(summary, h("span", { class: "quiet" }, "No test was run yet in this tab. Nobody is called when they run."));
}

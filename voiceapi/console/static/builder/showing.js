// What is shown over the canvas of the editor: one choice, its marks and their legend, and the same as a table.

import { api } from "../app/api.js";
import { followRun } from "../app/live-run.js";
import { keepTest, lastTest } from "../app/tested.js";
import { turnsOfRun } from "../app/turns.js";
import { versionWhere } from "../app/versions.js";
import { alert, badge, button, field, instant, link, select, table, words } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { comparing } from "./comparing.js";
import { course } from "./course.js";
import { items } from "./items.js";
import { legend } from "./legend.js";
import { testMarks, trafficMarks, wayMarks } from "./overlays.js";
import { KINDS } from "./plain.js";

const RUNS = 20;
const VERSIONS = 100;
const CHOICES = [["", "Problems only"], ["tests", "Tests"], ["traffic", "Traffic"], ["call", "One call"], ["compare", "Two versions"]];

/**
 * `view`: the editor's canvas; `definition()` what it shows. `alone(isIt)` is told whether something is shown in place of
 * the canvas, on which nothing can be changed then. Returned: `control`, the choice, and `element`, what stands below.
 */
export function showing({ workflowId, signal, view, definition, alone }) {
  const path = `/workflow/${workflowId}`;
  const choice = select(CHOICES, "", { "aria-label": "Show" });
  const element = h("div", { class: "stack shown" });
  let here = new AbortController(); // what is shown now

  const keyOf = (kind, id) => items(definition(), `${kind}s`).findLast(({ item }) => item.id === id)?.key ?? null;
  const named = (kind, id, name) => {
    const key = keyOf(kind, id);
    return key ? button(name, () => view.focus(key), { kind: "small" }) : [name, " ", badge("gone")];
  };

  async function open() {
    here.abort();
    here = new AbortController();
    signal.addEventListener("abort", () => here.abort(), { once: true });
    const mine = here.signal;
    const wanted = choice.value;
    view.overlay(new Map());
    view.light();
    alone(wanted === "compare");
    show(element, wanted && h("p", { class: "loading" }, "Loading…"));
    try {
      const found = wanted ? await SHOWN[wanted](mine) : null;
      if (!mine.aborted) show(element, found);
    } catch (error) {
      if (!mine.aborted && error.name !== "AbortError") show(element, alert(error));
    }
  }
  choice.addEventListener("change", open);

  // -- the cases that were run

  const runCases = (text) => button(text, async () => {
    const answer = await api.post(`${path}/test`, { body: {}, signal });
    const version = await versionWhere(workflowId, signal, (each) => each.version_number === answer.version_number);
    keepTest(workflowId, { ...answer, version, isWhole: true });
    if (choice.value === "tests") await open();
  }, { kind: "small" });

  function tests() {
    const test = lastTest(workflowId);
    if (!test) return [h("p", {}, "The tests weren't run in this tab yet. They try what is saved."), h("p", { class: "actions" }, runCases("Run the tests"))];
    const all = testMarks(test.coverage, test.results);
    const explained = h("div");
    const mark = (marks) => {
      view.overlay(marks);
      show(explained, legend(marks));
    };
    const way = (result) => button("Show its way", (pressed) => {
      const isShown = pressed.getAttribute("aria-pressed") !== "true";
      for (const each of element.querySelectorAll("td [aria-pressed]")) each.setAttribute("aria-pressed", "false");
      pressed.setAttribute("aria-pressed", String(isShown));
      mark(isShown ? wayMarks(result) : all);
    }, { kind: "small", "aria-pressed": "false", "aria-label": `The way of “${result.name}”` });
    mark(all);
    const failed = [...test.results].sort((one, other) => Number(one.passed) - Number(other.passed));
    return [explained,
      h("p", { class: "actions" }, `Version ${test.version_number}: ${test.passed} passed, ${test.failed} failed.`, runCases("Run them again")),
      table("Tests", [
        ["Test", ({ name }) => name],
        ["Result", ({ passed }) => (passed ? badge("passed", "good") : badge("failed", "bad"))],
        ["Why", ({ mismatches }) => mismatches.slice(0, 1).map(({ place, expected }) => `${place}: ${expected}`)],
        ["On the canvas", way],
      ], failed, "This agent has no tests yet."),
      table("Never reached by a test", [
        ["Step or path", ([kind, { id, name }]) => named(kind, id, name)],
        ["Kind", ([kind]) => KINDS[kind]],
      ], ["node", "edge"].flatMap((kind) => test.coverage[`${kind}s`].untouched.map((part) => [kind, part])), "The tests reach every step and every path.")];
  }

  // -- the numbers of all runs

  async function traffic(mine) {
    const found = await api.get(`${path}/insights`, { signal: mine });
    if (!found.runs.counted) return h("p", { class: "empty" }, "Nobody has talked to this agent yet. Tests aren't counted.");
    const marks = trafficMarks(found);
    view.overlay(marks);
    const parts = [...found.nodes.map((node) => ["node", node.name, node]), ...found.edges.map((edge) => ["edge", edge.label || "without a label", edge])];
    return [legend(marks), h("p", {}, `${found.total.runs} ${found.total.runs === 1 ? "conversation" : "conversations"} since `, instant(found.runs.first_created_at), ". Tests aren't counted. ", link("More in its insights", `/agents/${workflowId}/insights`)),
      table("Traffic", [
        ["Step or path", ([kind, name, { id }]) => named(kind, id, name)],
        ["Kind", ([kind]) => KINDS[kind]],
        ["Times reached", ([, , { passed }]) => String(passed), { number: true }],
        ["Callers who left", ([, , { left }]) => (left === undefined ? "" : String(left)), { number: true }],
      ], parts)];
  }

  // -- one call, live or past

  async function call(mine) {
    const { runs } = await api.get(`${path}/runs`, { query: { limit: RUNS }, signal: mine });
    if (!runs.length) return h("p", { class: "empty" }, "There are no calls or chats yet.");
    const which = select(runs.map((run) => [String(run.id), `${run.mode === "textchat" ? "Chat" : "Call"} ${run.id}, ${run.is_completed ? words(run.disposition ?? "ended") : "in progress"}`]));
    const body = h("div");
    let following = new AbortController();
    mine.addEventListener("abort", () => following.abort());
    const follow = () => {
      following.abort();
      following = new AbortController();
      view.overlay(new Map());
      view.light();
      const steps = course(view, keyOf);
      show(body, steps.element);
      followRun(workflowId, which.value, following.signal, (run) => !following.signal.aborted && steps.update(turnsOfRun(run)));
    };
    which.addEventListener("change", follow);
    follow();
    return [h("div", { class: "fields" }, field("Call or chat", which)), body];
  }

  // -- two versions

  async function compare(mine) {
    const all = await api.get(`${path}/versions`, { query: { limit: VERSIONS }, signal: mine });
    if (all.length < 2) return h("p", { class: "empty" }, "There is one version only. Save a change, and a draft follows it.");
    const options = all.map((each) => [String(each.version_number), `Version ${each.version_number} (${each.status})`]);
    const [from, to] = [select(options, options[1][0]), select(options, options[0][0])];
    const body = h("div");
    const again = async () => {
      try {
        show(body, (await comparing(workflowId, from.value, to.value, mine)).element);
      } catch (error) {
        if (error.name !== "AbortError") show(body, alert(error));
      }
    };
    for (const control of [from, to]) control.addEventListener("change", again);
    await again();
    return [h("p", { class: "quiet" }, "Versions as they are stored; choose “Problems only” to edit on."), h("div", { class: "fields" }, field("Before", from), field("After", to)), body];
  }

  const SHOWN = { tests, traffic, call, compare };
  return { control: h("label", { class: "inline show" }, "Show ", choice), element };
}

// The insights of an agent: how often its nodes and edges were passed, where callers left, and how quick it was.

import { api } from "../app/api.js";
import { keepQuery } from "../app/router.js";
import { versionWhere } from "../app/versions.js";
import { looking } from "../builder/looking.js";
import { trafficMarks } from "../builder/overlays.js";
import { legend } from "../builder/legend.js";
import { badge, button, checkbox, emptyState, facts, field, formWith, instant, link, section, select, showErrors, stateBadge, table } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { atFields, filtersOf, runFilters, valuesIn } from "./calls/run-filters.js";
import { milliseconds } from "./calls/turns.js";

const VERSIONS = 100;
const NUMBERS = [
  ["Passed", "passed"], ["Ended here", "ended"], ["Left", "left"], ["Caller's turns", "turns"],
  ["Not understood", "misses"], ["Silences", "silences"], ["Repeats", "repeats"],
];
// What may have happened at a node, by the names of the answer.
const HAPPENED = [
  ["Callers left", "left"], ["Not understood", "misses"], ["Silences", "silences"], ["Repeats", "repeats"],
  ["Model failures", "model_failures"], ["In progress", "in_progress"], ["Slowest answers", "slowest"], ["Newest of all", "passed"],
];
const PERCENTILES = [["Half within", "p50"], ["9 in 10 within", "p90"], ["99 in 100 within", "p99"]];

const time = (seconds) => (seconds === null ? "" : milliseconds(seconds * 1000));

export default async function insights({ root, params: [id], query, signal, title }) {
  const path = `/workflow/${encodeURIComponent(id)}`;
  const [workflow, versions, campaigns, codes] = await Promise.all([
    api.get(`/workflow/fetch/${encodeURIComponent(id)}`, { signal }),
    api.get(`${path}/versions`, { query: { limit: VERSIONS }, signal }),
    api.get("/campaign/", { signal }).then((answer) => answer.campaigns),
    api.get("/organizations/disposition-codes", { signal }).then((answer) => answer.codes),
  ]);
  title(`Insights of ${workflow.name}`, [["Agents", "/agents"], [workflow.name, `/agents/${workflow.id}`]]);
  const values = { ...valuesIn(query), workflow: "" };
  const place = h("div", { class: "stack" });
  const summary = h("p", { class: "quiet", role: "status" });

  // -- the filters

  const filters = runFilters(values, { agents: null, campaigns: campaigns.filter((each) => each.workflow_id === workflow.id), codes });
  const tests = checkbox(query.get("include_tests") === "true");
  const version = select([["", "All"], ...versions.map((each) => [String(each.version_number), `Version ${each.version_number} (${each.status})`])]);
  version.value = query.get("version") ?? "";
  const form = formWith({ submit: "Show", act: async () => {
    filters.read();
    await load();
  }, beside: [button("Drop the filters", clear)] }, h("div", { class: "fields" }, field("Version", version, { name: "version" }),
    field("With tests: drafts that were tried out, and test triggers", tests, { name: "include_tests" })), filters.element);
  async function clear() {
    filters.clear();
    version.value = "";
    tests.checked = false;
    await load();
  }

  async function countTests() {
    tests.checked = true;
    await load();
  }

  /** The page of all runs with these filters; a list of runs knows no versions. */
  const asList = () => `/runs?${new URLSearchParams(Object.entries({ ...values, workflow: String(workflow.id) }).filter(([, value]) => value))}`;
  const runLinks = (ids) => ids.map((run, at) => [at > 0 && ", ", link(`Run ${run}`, `/agents/${workflow.id}/runs/${run}`)]);

  async function load() {
    const withTests = tests.checked ? "true" : "";
    keepQuery({ ...values, version: version.value, include_tests: withTests });
    const chosen = filtersOf(values);
    let found;
    try {
      found = await api.get(`${path}/insights`, { query: { filters: chosen, version: version.value, include_tests: withTests }, signal });
    } catch (error) {
      throw error.status === 422 ? atFields(error, values) : error;
    }
    const { runs, total } = found;
    const leftOut = !withTests && runs.tests > 0 && [` ${runs.tests} ${runs.tests === 1 ? "test is" : "tests are"} left out. `, button("Count tests, too", countTests, { kind: "small" })];
    if (!runs.counted) {
      show(summary, "No runs");
      show(place, leftOut ? emptyState("There were only tests so far.", leftOut) : chosen || version.value
        ? emptyState("No run meets these filters.", button("Drop the filters", clear))
        : emptyState("Nobody has talked to this agent yet.", link("Talk to it", `/agents/${workflow.id}/talk`, { class: "button" })));
      return;
    }
    show(summary,
      `${runs.counted === runs.found ? "All" : `The newest ${runs.counted} of`} ${runs.found} ${runs.found === 1 ? "run" : "runs"}, from `,
      instant(runs.first_created_at), " to ", instant(runs.last_created_at),
      `: ${total.runs} ${total.runs === 1 ? "conversation" : "conversations"}, ${total.in_progress} in progress. `,
      link("List the runs", asList()), leftOut);
    await showFound(found);
  }

  // -- what was found

  async function showFound({ version_number: number, nodes, edges, total }) {
    const names = new Map(nodes.map((node) => [node.id, node.name]));
    const detail = h("div", { class: "stack" }, h("p", { class: "empty" }, "Choose a node or an edge, in the drawing or in the tables."));
    const isIt = (each) => each.version_number === number;
    const { workflow_json: definition } = versions.find(isIt) ?? await versionWhere(id, signal, isIt);
    const graph = await looking(definition, {
      label: `Drawing of ${workflow.name} with how often each node and edge was passed`,
      signal,
      chosen: (part, isOpened) => {
        if (!part) return;
        const [list, tell] = part.kind === "node" ? [nodes, tellNode] : [edges, tellEdge];
        const found = list.find((each) => each.id === part.id && each.in_workflow);
        if (found) tell(found);
        if (isOpened) detail.querySelector("h3")?.focus();
      },
    });
    const marks = trafficMarks({ nodes, edges });
    graph.overlay(marks);
    const choose = (kind, item) => {
      graph.choose(kind, item.in_workflow ? item.id : null);
      (kind === "node" ? tellNode : tellEdge)(item);
      detail.querySelector("h3").focus();
    };
    const [chooseNode, chooseEdge] = ["node", "edge"].map((kind) => (item) => choose(kind, item));
    const head = (text, item) => h("h3", { tabindex: "-1" }, text, !item.in_workflow && [" ", badge("gone")]);
    const tellNode = (node) => show(detail, head(node.name, node), nodeView(node));
    const tellEdge = (edge) => show(detail,
      head(edge.label || "An edge without a label", edge),
      facts([
        ["From", names.get(edge.source) ?? edge.source], ["To", names.get(edge.target) ?? edge.target], ["Passed", String(edge.passed)],
        ["Conversations", String(edge.runs)], ["Newest", edge.run_ids.length ? runLinks(edge.run_ids) : null],
      ]));
    const named = (item, text, choose) => [button(text, () => choose(item), { kind: "small" }), !item.in_workflow && [" ", badge("gone")]];
    const every = [...nodes, { ...total, name: "All nodes", isTotal: true }];
    const nameOf = (node) => (node.isTotal ? h("strong", {}, node.name) : named(node, node.name, chooseNode));
    const times = (member) => [
      ["Answers", (node) => String(node[member].count), { number: true }],
      ...PERCENTILES.map(([text, name]) => [text, (node) => time(node[member][name]), { number: true }]),
    ];
    const ends = nodes.flatMap((node) => node.dispositions.map((each) => ({ node, ...each })));
    show(place,
      h("div", { class: "run" },
        section("On the drawing", graph.element, legend(marks)),
        section("One node or edge", detail)),
      section("Nodes", table("Nodes", [
        ["Node", nameOf],
        ...NUMBERS.map(([text, name]) => [text, (node) => String(node[name]), { number: true }]),
      ], every)),
      section("Edges", table("Edges", [
        ["Edge", (edge) => named(edge, edge.label || "without a label", chooseEdge)],
        ["From", (edge) => names.get(edge.source) ?? edge.source],
        ["To", (edge) => names.get(edge.target) ?? edge.target],
        ["Passed", (edge) => String(edge.passed), { number: true }],
        ["Conversations", (edge) => String(edge.runs), { number: true }],
      ], edges, "This agent has no edges.")),
      section("Where conversations ended", table("Where conversations ended", [
        ["Node", ({ node }) => named(node, node.name, chooseNode)],
        ["Came out as", (each) => (each.disposition ? stateBadge(each.disposition) : "")],
        ["Runs", (each) => String(each.runs), { number: true }],
        ["Newest", (each) => runLinks(each.run_ids)],
      ], ends, "None has ended yet.")),
      section("How long callers waited for an answer", table("How long callers waited", [["Node", nameOf], ...times("answer_seconds")],
        every.filter((node) => node.answer_seconds.count), "No caller has said anything yet.")),
      section("How long language models took", table("How long language models took", [
        ["Node", nameOf], ...times("model_seconds"), ["Failures", (node) => String(node.model_failures), { number: true }],
      ], every.filter((node) => node.model_seconds.count || node.model_failures), "No language model was asked.")),
      section("Tools", toolTable(total.tools, "No tool was called.")));
  }

  const toolTable = (tools, empty) => table("Tools", [
    ["Tool", (tool) => h("code", {}, tool.name)],
    ["Calls", (tool) => String(tool.calls), { number: true }],
    ["Failures", (tool) => String(tool.failures), { number: true }],
    ["Never answered", (tool) => String(tool.unfinished), { number: true }],
    ...PERCENTILES.map(([text, name]) => [text, (tool) => time(tool.seconds[name]), { number: true }]),
    ["Newest failures", (tool) => runLinks(tool.run_ids)],
  ], tools, empty);

  function nodeView(node) {
    const happened = HAPPENED.filter(([, name]) => node.run_ids[name].length);
    return [
      facts([...NUMBERS.map(([text, name]) => [text, String(node[name])]), ["Conversations", String(node.runs)],
        ...PERCENTILES.map(([text, name]) => [`Answers: ${text.toLowerCase()}`, time(node.answer_seconds[name])])]),
      node.dispositions.length > 0 && [h("h4", {}, "How conversations ended here"), facts(node.dispositions.map((each) =>
        [each.disposition ?? "not known", [`${each.runs}: `, runLinks(each.run_ids)]]))],
      node.tools.length > 0 && [h("h4", {}, "Tools called here"), toolTable(node.tools)],
      happened.length > 0 && [h("h4", {}, "The newest runs"), facts(happened.map(([text, name]) => [text, runLinks(node.run_ids[name])]))],
    ];
  }

  show(root,
    h("details", { class: "card", open: filtersOf(values) !== null || version.value !== "" || tests.checked }, h("summary", {}, "Filters"), form),
    summary, place);
  await load().catch((error) => {
    if (!error.items?.length) throw error;
    show(place, h("p", { class: "empty" }, "These filters can't be used as they are."));
    showErrors(form, error);
  });
}

// The insights of an agent: how often its steps and paths were taken, where callers hung up, and how quick it was.

import { api } from "../app/api.js";
import { keepQuery } from "../app/router.js";
import { versionWhere } from "../app/versions.js";
import { looking } from "../builder/looking.js";
import { trafficMarks } from "../builder/overlays.js";
import { legend } from "../builder/legend.js";
import { badge, button, checkbox, emptyState, facts, field, formWith, instant, link, section, select, showErrors, skeleton, stateBadge, table, words } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { atFields, filtersOf, runFilters, valuesIn } from "./calls/run-filters.js";
import { milliseconds } from "./calls/turns.js";

const VERSIONS = 100;
const NUMBERS = [
  ["Reached", "passed"], ["Ended here", "ended"], ["Caller hung up", "left"], ["Caller spoke", "turns"],
  ["Not understood", "misses"], ["Caller was silent", "silences"], ["Said again", "repeats"],
];
// What may have happened at a step, by the names of the answer.
const HAPPENED = [
  ["Caller hung up", "left"], ["Not understood", "misses"], ["Caller was silent", "silences"], ["Said again", "repeats"],
  ["Language model failed", "model_failures"], ["Going on", "in_progress"], ["Slowest answers", "slowest"], ["Newest of all", "passed"],
];
const PERCENTILES = [["Half within", "p50"], ["9 in 10 within", "p90"], ["99 in 100 within", "p99"]];

const time = (seconds) => (seconds === null ? "" : milliseconds(seconds * 1000));

export default async function insights({ root, params: [id], query, signal, title }) {
  const path = `/workflow/${encodeURIComponent(id)}`;
  const asked = {
    workflow: api.get(`/workflow/fetch/${encodeURIComponent(id)}`, { signal }),
    versions: api.get(`${path}/versions`, { query: { limit: VERSIONS }, signal }),
    campaigns: api.get("/campaign/", { signal }).then((answer) => answer.campaigns),
    codes: api.get("/organizations/disposition-codes", { signal }).then((answer) => answer.codes),
  };
  for (const each of Object.values(asked)) each.catch(() => {}); // whoever waits for it gets the error
  const values = { ...valuesIn(query), workflow: "" };
  const place = h("div", { class: "stack" }, h("div", { class: "card" }, skeleton(8)));
  const summary = h("p", { class: "quiet", role: "status" });
  const workflow = await asked.workflow;
  title(`Insights of ${workflow.name}`, [["Agents", "/agents"], [workflow.name, `/agents/${workflow.id}`]]);

  // -- the filters

  const filters = runFilters(values, {
    agents: null, campaigns: asked.campaigns.then((found) => found.filter((each) => each.workflow_id === workflow.id)), codes: asked.codes,
  });
  const tests = checkbox(query.get("include_tests") === "true");
  const wanted = query.get("version") ?? "";
  const version = select([["", "All"], ...(wanted ? [[wanted, `Version ${wanted}`]] : [])], wanted);
  const showVersions = (found) => {
    const chosen = version.value;
    show(version, [["", "All"], ...found.map((each) => [String(each.version_number), `Version ${each.version_number} (${each.status})`])]
      .map(([value, text]) => h("option", { value }, text)));
    version.value = chosen;
  };
  const form = formWith({ submit: "Show", act: async () => {
    filters.read();
    await load();
  }, beside: [button("Drop the filters", clear)] }, h("div", { class: "fields" }, field("Version", version, { name: "version" }),
    field("Count tests, too: drafts that were tried out, and test triggers", tests, { name: "include_tests" })), filters.element);
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

  /** The page of all calls and chats with these filters; it knows no versions. */
  const asList = () => `/runs?${new URLSearchParams(Object.entries({ ...values, workflow: String(workflow.id) }).filter(([, value]) => value))}`;
  const runLinks = (ids) => ids.map((run, at) => [at > 0 && ", ", link(`No. ${run}`, `/agents/${workflow.id}/runs/${run}`)]);

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
    const leftOut = !withTests && runs.tests > 0 && [` ${runs.tests} ${runs.tests === 1 ? "test isn't" : "tests aren't"} counted. `, button("Count tests, too", countTests, { kind: "small" })];
    if (!runs.counted) {
      show(summary, "Nothing to count");
      show(place, leftOut ? emptyState("There were only tests so far.", leftOut) : chosen || version.value
        ? emptyState("No call or chat meets these filters.", button("Drop the filters", clear))
        : emptyState("Nobody has talked to this agent yet.", link("Talk to it", `/agents/${workflow.id}/talk`, { class: "button" })));
      return;
    }
    const view = await viewOf(found);
    const many = (number, one, more) => `${number} ${number === 1 ? one : more}`;
    const others = runs.counted - total.runs;
    show(summary,
      `${runs.counted === runs.found ? "All" : `The newest ${runs.counted} of`} ${many(runs.found, "call or chat", "calls and chats")}, from `,
      instant(runs.first_created_at), " to ", instant(runs.last_created_at),
      `. The agent had a conversation in ${total.runs} of them`, total.in_progress > 0 && `, ${total.in_progress} of which ${total.in_progress === 1 ? "goes" : "go"} on now`,
      others > 0 && `; the other ${others} came to none`, ". ",
      link("See them in the list", asList()), leftOut);
    show(place, view);
  }

  // -- what was found

  /** All of it as elements; the drawing takes a moment. */
  async function viewOf({ version_number: number, nodes, edges, total }) {
    const names = new Map(nodes.map((node) => [node.id, node.name]));
    const detail = h("div", { class: "stack" }, h("p", { class: "empty" }, "Choose a step or a path, on the canvas or in the tables."));
    const isIt = (each) => each.version_number === number;
    const { workflow_json: definition } = (await asked.versions).find(isIt) ?? await versionWhere(id, signal, isIt);
    const graph = await looking(definition, {
      label: `Drawing of ${workflow.name} with how often each step was reached and each path taken`,
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
      head(edge.label || "A path without a label", edge),
      facts([
        ["From", names.get(edge.source) ?? edge.source], ["To", names.get(edge.target) ?? edge.target], ["Taken", String(edge.passed)],
        ["In conversations", String(edge.runs)], ["Newest", edge.run_ids.length ? runLinks(edge.run_ids) : null],
      ]));
    const named = (item, text, choose) => [button(text, () => choose(item), { kind: "small" }), !item.in_workflow && [" ", badge("gone")]];
    const every = [...nodes, { ...total, name: "All steps", isTotal: true }];
    const nameOf = (node) => (node.isTotal ? h("strong", {}, node.name) : named(node, node.name, chooseNode));
    const times = (member) => [
      ["Answers", (node) => String(node[member].count), { number: true }],
      ...PERCENTILES.map(([text, name]) => [text, (node) => time(node[member][name]), { number: true }]),
    ];
    const ends = nodes.flatMap((node) => node.dispositions.map((each) => ({ node, ...each })));
    return [
      h("div", { class: "run" },
        section("On the canvas", graph.element, legend(marks)),
        section("One step or path", detail)),
      section("Steps: how often each of these happened", table("Steps", [
        ["Step", nameOf],
        ...NUMBERS.map(([text, name]) => [text, (node) => String(node[name]), { number: true }]),
      ], every)),
      section("Paths from step to step", table("Paths", [
        ["Path", (edge) => named(edge, edge.label || "without a label", chooseEdge)],
        ["From", (edge) => names.get(edge.source) ?? edge.source],
        ["To", (edge) => names.get(edge.target) ?? edge.target],
        ["Taken", (edge) => String(edge.passed), { number: true }],
        ["In conversations", (edge) => String(edge.runs), { number: true }],
      ], edges, "This agent has no paths.")),
      section("Where conversations ended", table("Where conversations ended", [
        ["Step", ({ node }) => named(node, node.name, chooseNode)],
        ["Result", (each) => (each.disposition ? stateBadge(each.disposition) : "")],
        ["Conversations", (each) => String(each.runs), { number: true }],
        ["Newest", (each) => runLinks(each.run_ids)],
      ], ends, "None has ended yet.")),
      section("How long callers waited for an answer", table("How long callers waited", [["Step", nameOf], ...times("answer_seconds")],
        every.filter((node) => node.answer_seconds.count), "No caller has said anything yet.")),
      section("How long language models took", table("How long language models took", [
        ["Step", nameOf], ...times("model_seconds"), ["Failures", (node) => String(node.model_failures), { number: true }],
      ], every.filter((node) => node.model_seconds.count || node.model_failures), "No language model was asked.")),
      section("Tools that the agent used", toolTable(total.tools, "No tool was called.")),
    ];
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
      facts([...NUMBERS.map(([text, name]) => [text, String(node[name])]), ["In conversations", String(node.runs)],
        ...PERCENTILES.map(([text, name]) => [`Answers: ${text.toLowerCase()}`, time(node.answer_seconds[name])])]),
      node.dispositions.length > 0 && [h("h4", {}, "How conversations ended here"), facts(node.dispositions.map((each) =>
        [each.disposition ? words(each.disposition) : "not known", [`${each.runs}: `, runLinks(each.run_ids)]]))],
      node.tools.length > 0 && [h("h4", {}, "Tools called here"), toolTable(node.tools)],
      happened.length > 0 && [h("h4", {}, "The newest calls and chats"), facts(happened.map(([text, name]) => [text, runLinks(node.run_ids[name])]))],
    ];
  }

  show(root,
    h("details", { class: "card", open: filtersOf(values) !== null || version.value !== "" || tests.checked }, h("summary", {}, "Filters"), form),
    summary, place);
  await Promise.all([filters.whole, asked.versions.then(showVersions), load().catch((error) => {
    if (!error.items?.length) throw error;
    show(place, h("p", { class: "empty" }, "These filters can't be used as they are."));
    showErrors(form, error);
  })]);
}

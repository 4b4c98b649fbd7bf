// Past calls of an agent played again with its draft or another version: where they would go another way, and a summary by step.

import { ApiError, api } from "../app/api.js";
import { keepQuery } from "../app/router.js";
import { badge, details, field, form, input, instant, link, numberIn, section, table, words } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { versionChoice } from "./agents/version-choice.js";
import { lineView, turnName } from "./cases/case-dialogue.js";

const LAST = 20;
// What a replay led to: [kind of badge, of one call in a sentence, of several].
const OUTCOMES = {
  diverges: ["bad", "goes another way", "go another way"],
  differs: ["busy", "takes the same steps but says something else", "take the same steps but say something else"],
  same: ["good", "stays the same", "stay the same"],
  not_replayed: ["", "can't be played again", "can't be played again"],
};
const DIFFERENCES = { words: "The agent says", prompt: "The language model is asked", variables: "Answers it notes", error: "Error" };
// Of so many runs that go another way, each is shown at once.
const MOST_OPEN = 5;

export default async function replay({ root, params: [id], query, signal, title }) {
  const [agent, version] = await Promise.all([
    api.get(`/workflow/fetch/${encodeURIComponent(id)}`, { signal }), versionChoice(id, signal, query.get("version")),
  ]);
  title(`Play calls of ${agent.name} again`, [["Agents", "/agents"], [agent.name, `/agents/${agent.id}`], ["Tests", `/agents/${agent.id}/tests`]]);
  const runs = input({ value: query.get("runs") ?? "", inputmode: "numeric" });
  const last = input({ type: "number", min: "1", max: "200", value: query.get("last") ?? LAST });
  const summary = h("p", { role: "status" });
  const result = h("div", { class: "page" });
  const ids = () => runs.value.split(/[\s,]+/).filter(Boolean).map((text) => {
    if (!/^\d+$/.test(text)) throw new ApiError(422, [{ loc: ["body", "run_ids"], msg: `“${text}” is no number of a call or chat.` }]);
    return Number(text);
  });

  const play = async () => {
    const chosen = ids();
    keepQuery({ runs: chosen.join(","), last: chosen.length ? "" : last.value, version: version.control.value });
    show(summary, "The calls are played again…");
    show(result);
    try {
      const body = { version: version.chosen().version_number, ...(chosen.length ? { run_ids: chosen } : { last: numberIn(last) }) };
      const found = await api.post(`/workflow/${agent.id}/replay`, { body, signal });
      show(summary, inShort(found));
      show(result, found.results.length > 0 && [byNode(found.nodes), section("Calls and chats", h("div", { class: "stack" }, listOf(found)))]);
    } catch (error) {
      show(summary);
      throw error;
    }
  };

  const asked = form("Play them again", play,
    h("div", { class: "fields" },
      field("How many of the latest calls and chats", last, { name: "last", help: "At most 200." }),
      field("Or just these", runs, { name: "run_ids", help: "Their numbers from the list of calls, with commas between them." }),
      field("With which version of the agent", version.control, { name: "version" })));
  show(root,
    section("Which calls",
      h("p", { class: "quiet" }, "Would past calls still go as they went, with what you changed? The callers say again what they said, and tools and language models answer what they answered. Nobody is called, and nothing is sent or stored."),
      asked),
    summary, result);
  if (query.get("runs") || query.get("last")) asked.requestSubmit();

  const listOf = (found) => {
    const order = Object.keys(OUTCOMES);
    const sorted = [...found.results].sort((one, other) => order.indexOf(one.outcome) - order.indexOf(other.outcome));
    return sorted.map((each) => runView(each, found));
  };

  function runView(each, found) {
    const [kind] = OUTCOMES[each.outcome];
    const box = details([badge(words(each.outcome), kind), ` ${each.run_name}`, h("span", { class: "quiet" }, each.divergence && `, at “${each.divergence.node_name}”`)],
      h("p", {}, link(`No. ${each.run_id}`, `/agents/${agent.id}/runs/${each.run_id}`), ", ", instant(each.created_at),
        each.version_number !== null && `, held with version ${each.version_number}`),
      each.problem && h("p", {}, each.problem),
      each.differences.length > 0 && differences(each.differences),
      each.divergence && divergence(each.divergence, each, found));
    box.classList.add("case-result");
    box.open = each.outcome === "diverges" && (found.diverges <= MOST_OPEN || found.results.length === 1);
    return box;
  }
}

function inShort(found) {
  const total = found.results.length;
  if (!total) return "There are no calls or chats to play again yet.";
  const parts = Object.entries(OUTCOMES).filter(([outcome]) => found[outcome])
    .map(([outcome, [, one, many]]) => `${total === 1 ? "it" : found[outcome]} ${found[outcome] === 1 ? one : many}`);
  return `${total === 1 ? "One call or chat" : `${total} calls and chats`} with version ${found.version_number}: ${parts.join(", ")}.`;
}

function byNode(nodes) {
  return section("By step", table("By step", [
    ["Step", (node) => node.name],
    ["Calls that went on the same way", (node) => String(node.passed), { number: true }],
    ["That went another way from here", (node) => String(node.diverged), { number: true }],
    ["That heard something else here", (node) => String(node.differed), { number: true }],
  ], nodes, "No call came to a step."));
}

/** The first point where a run goes another way: the dialogue up to there, and both ways side by side. */
function divergence({ place, reason, before, was, would_be: now }, run, found) {
  const side = (heading, lines) => h("div", { class: "stack" }, h("h3", {}, heading),
    lines.length ? lines.map((line) => lineView(line)) : h("p", { class: "empty" }, "Nothing more."));
  return h("div", { class: "conversation" },
    before.map((line) => lineView(line)),
    h("p", { class: "mismatch" }, h("strong", {}, `${turnName(place)}, another way: `), reason),
    h("div", { class: "columns" }, side("As it was", was), side(`With version ${found.version_number}`, now)));
}

function differences(all) {
  return h("div", { class: "stack" }, h("h3", {}, "What is different on the same way"), all.map((each) => h("div", { class: "change" },
    h("p", {}, h("strong", {}, `${turnName(each.place)}, at “${each.node_name}”: `), `${DIFFERENCES[each.kind]}:`),
    h("p", { class: "words" }, h("span", { class: "quiet" }, "As it was: "), h("del", {}, each.was || "nothing")),
    h("p", { class: "words" }, h("span", { class: "quiet" }, "Now: "), h("ins", {}, each.would_be || "nothing")))));
}

// Practice callers of an agent: random ones, which find dead ends, or one described in a sentence, with what they found.

import { api } from "../app/api.js";
import { nameOf, nodeWithId } from "../builder/items.js";
import { callerMarks } from "../builder/overlays.js";
import {
  badge, button, callout, details, dialogForm, facts, field, form, input, keyValues, notify, numberIn, section, select, table, textarea, words,
} from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { versionChoice } from "./agents/version-choice.js";
import { dialogue } from "./cases/case-dialogue.js";
import { coverageView } from "./cases/coverage.js";

// What is grave: the others are advice.
const GRAVE = new Set(["pipeline-error", "dead-end", "loop-without-exit"]);
const RANDOM = "random";
const FEW = { [RANDOM]: 100, described: 3 }; // conversations, unless another number is wanted

export default async function callers({ root, params: [id], signal, title }) {
  const path = `/workflow/${encodeURIComponent(id)}`;
  const [agent, version] = await Promise.all([api.get(`/workflow/fetch/${encodeURIComponent(id)}`, { signal }), versionChoice(id, signal)]);
  title(`Practice callers for ${agent.name}`, [["Agents", "/agents"], [agent.name, `/agents/${agent.id}`], ["Tests", `/agents/${agent.id}/tests`]]);
  const kind = select([[RANDOM, "Callers who say all sorts of things"], ["described", "A caller I describe"]], RANDOM);
  const sentence = textarea("", { rows: "2", placeholder: "In a hurry, changes the day once, and wants to know what it costs." });
  const count = input({ type: "number", min: "1", value: FEW[RANDOM] });
  const seed = input({ type: "number", min: "0" });
  const context = keyValues({}, { add: "Add a value" });
  const described = field("The caller", sentence, { name: "caller", required: true, help: "What they are like and what they want. The language model plays them, and the agent's review steps judge the conversations." });
  const result = h("div", { class: "page" });
  const summary = h("p", { role: "status" });

  kind.addEventListener("change", () => {
    if (Object.values(FEW).includes(Number(count.value))) count.value = FEW[kind.value];
    described.hidden = kind.value === RANDOM;
  });
  described.hidden = true;

  const rehearse = async () => {
    const tested = version.chosen();
    show(summary, "They talk…");
    show(result);
    try {
      const given = context.read();
      const found = await api.post(`${path}/rehearsal`, {
        body: {
          version: tested.version_number,
          conversations: numberIn(count) ?? undefined,
          seed: numberIn(seed) ?? undefined,
          ...(kind.value === RANDOM ? {} : { caller: sentence.value.trim() }),
          ...(Object.keys(given).length ? { context: given } : {}),
        },
        signal,
      });
      const definition = tested.workflow_json;
      const view = await coverageView({ coverage: found.coverage, definition, marks: callerMarks(found, definition), who: "caller", signal });
      show(summary, inShort(found));
      show(result, report(found, definition), section("Which parts of the agent they reached", view));
    } catch (error) {
      show(summary);
      throw error;
    }
  };

  async function keep(given) {
    const name = input({ value: given.name, maxlength: "200" });
    const made = await dialogForm({ title: "Save it as a test", submit: "Save", act: () =>
      api.post(`${path}/cases`, { body: { case: given, name: name.value.trim() }, signal }) },
    field("Name", name, { name: "name", required: true, help: "The test expects what happened now. Once you have changed the agent, say in the test what you want to happen." }));
    if (!made) return;
    notify(`“${made.name}” is saved.`);
  }

  const keepButton = (given) => given && button("Save as a test", () => keep(given), { kind: "small" });

  const report = (found, definition) => [
    section("Problems they found", found.findings.length
      ? h("div", { class: "stack" }, found.findings.map((each) => findingView(each, definition)))
      : h("p", { class: "empty" }, "They found no problem."),
    found.findings_left_out > 0 && callout(`These are the first; there are ${found.findings_left_out} more.`)),
    section("Results of the conversations", facts(Object.entries(found.dispositions).map(([code, times]) => [words(code), `${times} of ${found.conversations}`]))),
    found.scores && scoresView(found),
    found.worst && section("The worst conversation", h("p", {}, found.worst.summary), dialogue(found.worst), h("div", { class: "actions" }, keepButton(found.worst.case))),
  ];

  const findingView = (each, definition) => {
    const box = details([badge(words(each.code), GRAVE.has(each.code) ? "bad" : "busy"), ` ${each.message}`],
      h("p", { class: "quiet" }, `In ${each.count === 1 ? "one conversation" : `${each.count} conversations`}`,
        each.node_ids.length > 0 && `, at ${each.node_ids.map((node) => `“${nameOf(nodeWithId(definition, node) ?? { id: node })}”`).join(", ")}`, "."),
      each.dialogue.length > 0 && [dialogue(each), h("div", { class: "actions" }, keepButton(each.case))]);
    box.classList.add("case-result");
    return box;
  };

  show(root,
    section("Let practice callers talk to it",
      h("p", { class: "quiet" }, "They are not people: this service plays them, and they talk to the agent by text. Nobody is called, nothing is stored, and only a language model, if one is set up, is asked."),
      form("Let them talk", rehearse,
      field("Who calls", kind),
      described,
      h("div", { class: "fields" },
        field("How many conversations", count, { name: "conversations" }),
        field("The same callers again: their number", seed, { name: "seed", help: "Each result names a number that brings these callers back. Empty: new callers." }),
        field("Version of the agent", version.control, { name: "version" })),
      field("Known before the call", context, { name: "context", help: "What the agent knows of each caller, such as first_name." }))),
    summary, result);
}

function inShort(found) {
  const few = found.conversations < found.asked ? ` of ${found.asked}, there was no time, or there were no turns, for more` : "";
  const findings = found.findings.length + found.findings_left_out;
  return `${found.conversations} conversations${few}, of the callers with the number ${found.seed}: ${findings === 0 ? "no problem" : findings === 1 ? "one problem" : `${findings} problems`}.`;
}

function scoresView({ scores, results }) {
  return section("How they were judged",
    facts([
      ["Conversations judged", String(scores.judged)],
      ["Scores", scores.judged ? `${scores.lowest} at least, ${scores.mean} on average, ${scores.highest} at most` : null],
      ["Tags", Object.entries(scores.tags).map(([tag, times]) => `${tag} (${times})`).join(", ")],
    ]),
    scores.problems.length > 0 && callout(h("ul", {}, scores.problems.map((problem) => h("li", {}, problem)))),
    table("Conversations", [
      ["No.", (each) => String(each.number), { number: true }],
      ["Result", (each) => words(each.disposition)],
      ["Turns", (each) => String(each.turns), { number: true }],
      ["Score", (each) => (each.score === null ? "" : String(each.score)), { number: true }],
      ["Summary", (each) => each.failure ?? each.summary],
      ["Tags", (each) => each.tags.join(", ")],
    ], results));
}

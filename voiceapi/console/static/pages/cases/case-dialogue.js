// What a test led to: the dialogue by turns, with what isn't as expected at its line.

import { badge, details, words } from "../../parts/components.js";
import { h } from "../../parts/dom.js";

/** What a turn of a case is called: "opening", "turns.0", ... */
export function turnName(place) {
  const number = /^turns\.(\d+)$/.exec(place)?.[1];
  return number === undefined ? { opening: "Beginning", end: "End" }[place] ?? place : `Turn ${Number(number) + 1}`;
}

/** The lines of a dialogue by turn, with their places in it: [[place, [[line, index], ...]], ...]. */
function byTurn(dialogue) {
  const turns = [];
  for (const [index, line] of dialogue.entries()) {
    if (turns.at(-1)?.[0] !== line.place) turns.push([line.place, []]);
    turns.at(-1)[1].push([line, index]);
  }
  return turns;
}

/** A line of a dialogue. `differs`: it isn't what was expected. */
export function lineView({ role, text, node_name: node }, differs = false) {
  const mark = differs ? " differs" : "";
  const note = differs && h("span", { class: "hidden" }, " (not as expected)");
  if (role === "caller" || role === "agent") {
    return h("p", { class: `said ${role}${mark}` },
      h("span", { class: "who" }, role === "agent" ? `Agent, at “${node}”` : "Caller", note), text.trim() ? text : h("em", {}, "silence"));
  }
  const began = { edge: "Takes the path", tool: "Uses the tool", answer: "Its answer:", error: "Error:" }[role];
  return h("p", { class: `happened${mark}${role === "error" ? " field-error" : ""}` }, `${began} `,
    role === "edge" ? h("strong", {}, text) : h("code", {}, text), note);
}

/** What was expected and what was found, with the place in the case. */
function mismatchView({ place, expected, found }) {
  return h("p", { class: "mismatch" }, h("strong", {}, "Expected: "), `${expected}. `, found, " ", h("code", { class: "quiet" }, place));
}

/** The dialogue of a result, turn by turn, and what was expected of the whole conversation at its end. */
export function dialogue({ dialogue: lines, mismatches = [] }) {
  const rest = mismatches.filter((mismatch) => !Number.isInteger(mismatch.line));
  const view = ([line, index]) => {
    const here = mismatches.filter((mismatch) => mismatch.line === index);
    return [lineView(line, here.length > 0), here.map(mismatchView)];
  };
  return h("div", { class: "conversation" },
    byTurn(lines).map(([place, said]) => h("article", { class: "turn", "aria-label": turnName(place) }, said.map(view))),
    rest.length > 0 && h("article", { class: "turn", "aria-label": "The whole conversation" },
      h("h4", {}, "Of the whole conversation"), rest.map(mismatchView)));
}

/** A result with its name; a failed one is open. `actions`: links and buttons about it. */
export function caseResult(result, actions = null) {
  const count = result.mismatches.length;
  const box = details(
    [result.passed ? badge("passed", "good") : badge("failed", "bad"), ` ${result.name}`,
      !result.passed && h("span", { class: "quiet" }, `, ${count === 1 ? "one difference" : `${count} differences`}`)],
    actions && h("div", { class: "actions" }, actions), dialogue(result),
    h("p", { class: "quiet" }, result.disposition ? `Result: ${words(result.disposition)}.` : "It has no result: the conversation wasn't over."));
  box.classList.add("case-result");
  box.open = !result.passed;
  return box;
}

/** How many passed, in a sentence. */
export function counted(passed, failed) {
  const total = passed + failed;
  if (!failed) return total === 1 ? "The test passed." : `All ${total} tests passed.`;
  return total === 1 ? "The test failed." : `${failed} of ${total} tests failed.`;
}

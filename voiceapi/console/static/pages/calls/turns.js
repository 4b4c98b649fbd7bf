// A turn of a conversation as it is shown: what was said, and why the agent said it.

import { reasons } from "../../app/turns.js";
import { badge, code, details, stateBadge } from "../../parts/components.js";
import { h } from "../../parts/dom.js";

/** Who answers without a language model. */
export const SCRIPTED = "the scripted model";

/** Who answers in a run: SCRIPTED, or the name of a language model. */
export function answererOf(run) {
  const model = run.initial_context?.runtime_configuration;
  if (model) return [model.llm_provider, model.llm_model].filter(Boolean).join(" ");
  const isOther = (run.logs?.realtime_feedback_events ?? []).some(({ payload }) => payload.reason?.kind === "model");
  return isOther ? "the app's own model" : SCRIPTED;
}

/** A value in a line. */
export const inWords = (value) => (typeof value === "string" ? value : JSON.stringify(value));

export function milliseconds(value) {
  if (value === null || value === undefined) return "";
  return value < 1000 ? `${Math.round(value * 10) / 10} ms` : `${Math.round(value / 100) / 10} s`;
}

function waitsInWords({ first_word_seconds: word, latency_seconds: first, last_sentence_seconds: last, ...reported }) {
  return [
    [reported.recognition_seconds, "for the carrier to recognise the words"], [reported.round_trip_seconds, "to the carrier and back"],
    [word, "until the model's first word"], [first, last === undefined ? "for the answer" : "until its first sentence"], [last, "until its last"],
  ].filter(([seconds]) => seconds !== undefined).map(([seconds, what]) => `${milliseconds(seconds * 1000)} ${what}`).join(", ");
}

/** What somebody said, as a bubble; `marked` are words of it. */
export function spoken({ who, text, keyed }, marked = []) {
  return h("p", { class: `said ${who}` },
    h("span", { class: "who" }, who === "agent" ? "Agent" : keyed ? "Caller, by keys" : "Caller"),
    text.trim() ? withMarks(text, marked) : h("em", {}, "silence"));
}

function withMarks(text, marked) {
  const words = marked.map((each) => each.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  // A word that ends within another one isn't meant; Chinese and Japanese have no blanks between words.
  const parts = words.length ? text.split(new RegExp(`(?<![\\p{Script=Latin}\\d])(${words.join("|")})(?![\\p{Script=Latin}\\d])`, "iu")) : [text];
  return parts.map((part, at) => (at % 2 ? h("mark", {}, part) : part));
}

// What the scripted model takes words for.
const ANSWERS = { yes: "a yes", no: "a no", change: "a wish for another time", cancel: "a wish to cancel" };

const quoted = (found) => found.map((each) => `“${each}”`).join(", ");

// Why a path was taken, by the kind of the reason, which docs/conversation.md lists.
const BECAUSE = {
  words: ({ matched, in: place }) => ` because the caller said ${quoted(matched)}, ${matched.length > 1 ? "words" : "a word"} of its ${place === "label" ? "name" : "condition"}`,
  answer: ({ matched, answer }) => ` because the caller said ${quoted(matched)}, which is taken for ${ANSWERS[answer] ?? answer}`,
  number: ({ matched }) => ` because the caller said a number, ${quoted(matched)}`,
  keys: ({ matched }) => ` because the caller pressed ${matched.join(", ")}`,
  person: () => " because the caller asked for a person",
  error: () => " because what the step calls first failed",
};

/** Why an edge was taken; `who` is the model that is asked, and `isSilent` whether the caller said nothing. */
function because({ reason, call }, who, isSilent) {
  const known = BECAUSE[reason?.kind];
  if (known) return known(reason);
  // A run of an earlier release has no reason, but a language model's call is one.
  if (!call || (!reason && (!who || who === SCRIPTED))) return "; why wasn't recorded by the release that held it";
  return [` because ${isSilent ? "after a silence " : ""}${!who || who === SCRIPTED ? "the model" : who} called `, h("code", {}, functionCall(call))];
}

const functionCall = ({ name, arguments: given }) => `${name}(${Object.keys(given ?? {}).length ? inWords(given) : ""})`;

/**
 * A turn as an article. `model`: who answers where the events name nobody, SCRIPTED or the name of a language model; `actions`:
 * buttons of the turn.
 */
export function turnView(turn, { actions = null, isSetAside = false, model = null } = {}) {
  const why = reasons(turn.events);
  const models = why.models.length ? why.models.map(modelInWords) : model && turn.said.some(({ who }) => who === "caller") ? [model] : [];
  const asked = why.models.filter(({ purpose }) => purpose !== "extraction").map(nameOf).at(-1) ?? model;
  const isSilent = turn.said.some(({ who, text }) => who === "caller" && !text.trim());
  const marked = why.edges.flatMap(({ reason }) => reason?.matched ?? []);
  return h("article", { class: `turn${isSetAside ? " set-aside" : ""}`, "aria-label": turn.title },
    turn.said.map((each) => spoken(each, each.who === "caller" ? marked : [])),
    h("ul", { class: "why" },
      turn.isPending && h("li", {}, "The answer isn't whole yet."),
      why.misses > 0 && h("li", {}, badge("not understood", "busy"), why.misses > 1 && ` ${why.misses} times in a row`,
        why.lookedAt.length > 0 && details("why", h("ul", {}, why.lookedAt.map(({ edge, words }) =>
          h("li", {}, "The path ", badge(edge), words.length ? ` is taken for: ${words.join(", ")}` : " has no words to be taken for"))))),
      why.entered && h("li", {}, "Starts at ", h("strong", {}, why.entered.node_name)),
      why.edges.map((edge) => h("li", {}, edge.edge_label ? ["Takes the path ", badge(edge.edge_label, "good"), " from "] : "Goes from ",
        h("strong", {}, edge.previous_node_name), " to ", h("strong", {}, edge.node_name), because(edge, asked, isSilent), ".")),
      why.tools.map((call) => h("li", {}, "Calls ", h("code", {}, functionCall(call)),
        call.result?.status === "error" ? [" ", badge("error", "bad")] : null,
        call.result === null ? ", no answer yet" : [call.took === null ? null : `, answered in ${milliseconds(call.took)}`,
          details("its answer", code(call.result, `Answer of ${call.name}`))])),
      Object.entries(why.variables).map(([name, value]) => h("li", {}, "Finds ", h("code", {}, `${name} = ${inWords(value)}`))),
      why.errors.map((error) => h("li", { class: "field-error" }, error)),
      why.end && h("li", {}, "The result: ", stateBadge(why.end)),
      h("li", { class: "quiet" }, [
        turn.title, turn.at && new Date(turn.at).toLocaleTimeString(), models.length > 0 && `answered by ${models.join(", ")}`,
        turn.waits && `the caller waited ${waitsInWords(turn.waits)}`,
      ].filter(Boolean).join(" · "))),
    actions && h("div", { class: "actions" }, actions));
}

const nameOf = ({ provider, model }) => (model === "scripted" ? SCRIPTED : provider ? `${provider} ${model}` : model);

function modelInWords(found) {
  return `${nameOf(found)}${found.purpose === "extraction" ? " (for the answers)" : ""} in ${milliseconds(found.milliseconds)}`;
}

/** Show a list that mostly grows at its end: what is there already stays, so that only the new is read out. */
export function showList(place, items, view) {
  const before = place.listed ?? [];
  const now = items.map((item) => JSON.stringify(item));
  const differs = now.findIndex((text, at) => text !== before[at]);
  const from = differs === -1 ? now.length : differs;
  for (const old of [...place.children].slice(from)) old.remove();
  place.append(...items.slice(from).map((item, at) => view(item, from + at)));
  place.listed = now;
}

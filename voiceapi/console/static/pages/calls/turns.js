// A turn of a conversation as it is shown: what was said, and why the agent said it.

import { reasons } from "../../app/turns.js";
import { badge, code, details } from "../../parts/components.js";
import { h } from "../../parts/dom.js";

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

/** What somebody said, as a bubble. */
export function spoken({ who, text, keyed }) {
  return h("p", { class: `said ${who}` },
    h("span", { class: "who" }, who === "agent" ? "Agent" : keyed ? "Caller, by keys" : "Caller"), text.trim() ? text : h("em", {}, "silence"));
}

/** A turn as an article. `model`: who answers where the events name nobody; `actions`: buttons of the turn. */
export function turnView(turn, { actions = null, isSetAside = false, model = null } = {}) {
  const why = reasons(turn.events);
  const models = why.models.length ? why.models.map(modelInWords) : model && turn.said.some(({ who }) => who === "caller") ? [model] : [];
  return h("article", { class: `turn${isSetAside ? " set-aside" : ""}`, "aria-label": turn.title },
    turn.said.map(spoken),
    h("ul", { class: "why" },
      turn.isPending && h("li", {}, "The answer isn't whole yet."),
      why.misses > 0 && h("li", {}, badge("not understood", "busy"), why.misses > 1 && ` ${why.misses} times in a row`,
        why.lookedAt.length > 0 && details("why", h("ul", {}, why.lookedAt.map(({ edge, words }) =>
          h("li", {}, "The edge ", badge(edge), words.length ? ` is taken for: ${words.join(", ")}` : " has no words to be taken for"))))),
      why.entered && h("li", {}, "Starts at ", h("strong", {}, why.entered.node_name)),
      why.edges.map((edge) => h("li", {}, edge.edge_label ? ["Takes the edge ", badge(edge.edge_label, "good"), " from "] : "Goes from ",
        h("strong", {}, edge.previous_node_name), " to ", h("strong", {}, edge.node_name))),
      why.tools.map((call) => h("li", {}, "Calls ", h("code", {}, `${call.name}(${call.arguments ? inWords(call.arguments) : ""})`),
        call.result?.status === "error" ? [" ", badge("error", "bad")] : null,
        call.result === null ? ", no answer yet" : details("its answer", code(call.result, `Answer of ${call.name}`)))),
      Object.entries(why.variables).map(([name, value]) => h("li", {}, "Finds ", h("code", {}, `${name} = ${inWords(value)}`))),
      why.errors.map((error) => h("li", { class: "field-error" }, error)),
      why.end && h("li", {}, "Ends as ", badge(why.end)),
      h("li", { class: "quiet" }, [
        turn.at && new Date(turn.at).toLocaleTimeString(), models.join(", "),
        turn.waits && waitsInWords(turn.waits),
      ].filter(Boolean).join(" · "))),
    actions && h("div", { class: "actions" }, actions));
}

function modelInWords({ provider, model, purpose, milliseconds: took }) {
  const name = provider && model !== "scripted" ? `${provider} ${model}` : model;
  return `${name === "scripted" ? "scripted model" : name}${purpose === "extraction" ? " (extraction)" : ""} ${milliseconds(took)}`;
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

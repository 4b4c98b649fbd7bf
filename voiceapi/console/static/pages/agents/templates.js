// Templates by purpose, as cards that the words of the description narrow down.

import { badge, button, debounced, emptyState } from "../../parts/components.js";
import { h, show } from "../../parts/dom.js";

export const DIRECTIONS = { inbound: "It answers calls", outbound: "It calls people" };
const SHORTEST = 4; // letters: of shorter words, nearly every text has some
const VARIABLE = /\{\{\s*[\w.]+\s*(?:\|\s*([^}]*?)\s*)?\}\}/g;

/** What an agent says first, without a model. Variables are as for a person of whom nothing is known. */
export function firstWords({ nodes }) {
  const { greeting, scripted_text: text, prompt } = nodes.find((node) => node.type === "startCall")?.data ?? {};
  return (greeting || text || prompt || "").replace(VARIABLE, (_, otherwise) => otherwise ?? "…");
}

/** The beginnings of a text's words, so that "bookings" finds "book". */
const stems = (text) => new Set((text.toLocaleLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])
  .filter((word) => word.length >= SHORTEST).map((word) => word.slice(0, SHORTEST)));

/**
 * The cards of examples. `box`: what is typed there decides which are shown, those first that have most of its words.
 * `make(example)` and `look(example, button)` are what their buttons do.
 */
export function templates(examples, box, { make, look }) {
  const found = examples.map((example) => ({ view: card(example), words: stems(`${example.name} ${example.purpose} ${firstWords(example.workflow_definition)}`) }));
  const list = h("ul", { class: "tiles" });
  const note = h("div", { role: "status" });
  let isAll = false;

  function paint() {
    const telling = [...stems(box.value)].filter((word) => found.filter(({ words }) => words.has(word)).length <= found.length / 2);
    const scored = found.map((each) => ({ ...each, score: telling.filter((word) => each.words.has(word)).length }));
    const fitting = scored.filter(({ score }) => score).toSorted((one, other) => other.score - one.score);
    const rest = scored.filter(({ score }) => !score);
    show(list, [...fitting, ...(isAll || !fitting.length ? rest : [])].map(({ view }) => view));
    show(note, fitting.length > 0 && !isAll && emptyState(
      `${fitting.length} of ${found.length} templates have words of yours.`,
      button("Show all templates", () => {
        isAll = true;
        paint();
      })));
  }

  function card(example) {
    const first = firstWords(example.workflow_definition);
    const named = (text) => ({ "aria-label": `${text}: ${example.purpose}` });
    return h("li", { class: "card template" },
      h("h3", {}, example.purpose),
      h("p", {}, badge(DIRECTIONS[example.direction]), " ", h("span", { class: "quiet" }, example.name)),
      first && h("p", { class: "said agent" }, h("span", { class: "who" }, "It begins with"), first),
      h("div", { class: "actions" },
        button("Make it and talk", () => make(example), { kind: "small", ...named("Make it and talk") }),
        button("Look at it", (opener) => look(example, opener), { kind: "small", ...named("Look at it") })));
  }

  box.addEventListener("input", debounced(() => {
    isAll = false;
    paint();
  }));
  paint();
  return h("div", { class: "stack" }, list, note);
}

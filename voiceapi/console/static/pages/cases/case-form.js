// The form of a conversation case: what the caller does, turn by turn, and what is expected of the agent.

import { items, nameOf } from "../../builder/items.js";
import { button, field, fieldset, input, select, textarea } from "../../parts/components.js";
import { h } from "../../parts/dom.js";
import { fields, part, placeAt } from "./case-parts.js";

const MODELS = [
  ["scripted", "Only the agent's own sentences"],
  ["played", "A language model that this test plays"],
  ["configured", "The language model in the settings"],
];
// What a caller does: [member, what it is called, the label of what is typed with it].
const DOES = [
  ["caller", "says something", "The caller's words"],
  ["keys", "presses keys", "Keys"],
  ["silence", "stays silent", null],
  ["hangs_up", "hangs up", null],
  ["ends", "loses the call, with this result", "Result, such as voicemail_detected"],
];
const SPEAKING = new Set(["startCall", "agentNode", "endCall"]);
const A_LINE = "Words that must be in it, or several parts, one on each line. Empty: anything.";
const NEVER = "Words that must not be in it, one on each line.";

/** The names of the nodes that speak, or their ids where two have the same name. */
function nodesOf(definition) {
  const speaking = items(definition, "nodes").map(({ item }) => item).filter((node) => SPEAKING.has(node.type));
  const names = speaking.map(nameOf);
  return [["", "Any"], ...speaking.map((node, at) => (names.filter((name) => name === names[at]).length > 1
    ? [String(node.id), `${names[at]} (${node.id})`] : [names[at], names[at]]))];
}

const expectations = (nodes) => [
  ["says", "lines", "The agent says", { help: A_LINE }],
  ["never", "lines", "It doesn't say", { help: NEVER }],
  ["node", "choice", "Then the agent is at the step", { options: nodes }],
  ["edges", "lines", "Paths taken", { help: "Their names, one on each line, in order. Empty: any." }],
];
const DECISIONS = ["model", "json", "What the language model decides", {
  help: 'A list, such as [{"edge": "Yes"}], [{"say": "…"}], [{"call": "find_a_slot", "with": {…}}] or [{"extract": {…}}].',
}];
const MORE = { help: "Such as matches (patterns), transfers_to and transfer, and of a turn after (seconds).", seldom: ["never", "edges"] };

/** What the opening or a turn expects, and what a played model decides in it. */
function expected(data, nodes, title) {
  const found = part(data, [...expectations(nodes), DECISIONS], { ...MORE, title });
  const { model, says, node } = found.fields;
  return {
    read: found.read,
    boxes: [fields(says, node), model, found.rest],
    /** Decisions are shown for a played model, and where there are some that are one too many. */
    showDecisions: (isPlayed) => { model.hidden = !isPlayed && !model.querySelector("textarea").value; },
  };
}

function turnForm(data, nodes) {
  const known = DOES.find(([name]) => data[name] !== undefined && data[name] !== null && data[name] !== false) ?? DOES[0];
  const { [known[0]]: given, ...others } = data;
  const kind = select(DOES.map(([name, text]) => [name, text]), known[0]);
  const text = known[2] && given !== undefined ? String(given) : "";
  const words = text.includes("\n") ? textarea(text, { rows: "3" }) : input({ value: text });
  const typed = field("The caller's words", words);
  const rest = expected(others, nodes, "More of this turn");
  const heading = h("legend");
  const tools = h("div", { class: "actions" });
  const element = h("fieldset", {}, heading, fields(field("The caller", kind), typed), rest.boxes, tools);
  const showTyped = () => {
    const [name, , label] = DOES.find(([each]) => each === kind.value);
    typed.hidden = label === null;
    typed.querySelector("label").textContent = label ?? "";
    typed.dataset.part = name;
  };
  showTyped();
  const turn = {
    element,
    tools,
    showDecisions: rest.showDecisions,
    read: () => ({ [kind.value]: typed.hidden ? true : words.value, ...rest.read() }),
    /** Say which turn it is: its number from 0. */
    number(at) {
      heading.textContent = `Turn ${at + 1}`;
      element.dataset.part = "";
      element.dataset.name = `case.turns.${at}`;
      placeAt(element, `case.turns.${at}`);
    },
  };
  kind.addEventListener("change", () => {
    showTyped();
    typed.dataset.name = `${element.dataset.name}.${kind.value}`;
  });
  return turn;
}

/** The turns, which can be added, moved and removed. */
function turnsForm(data, nodes, isPlayed) {
  const list = h("div", { class: "stack" });
  const turns = [];
  const add = (turn, { focus = true } = {}) => {
    const made = turnForm(turn, nodes);
    made.showDecisions(isPlayed());
    turns.push(made);
    list.append(made.element);
    number();
    if (focus) made.element.querySelector("select").focus();
  };
  const move = (turn, step) => {
    const at = turns.indexOf(turn);
    turns.splice(at, 1);
    turns.splice(at + step, 0, turn);
    list.replaceChildren(...turns.map((each) => each.element));
    number();
    const [up, down] = turn.tools.children;
    (step < 0 && !up.disabled ? up : down.disabled ? up : down).focus();
  };
  const remove = (turn) => {
    const at = turns.indexOf(turn);
    turns.splice(at, 1);
    turn.element.remove();
    number();
    (turns[Math.min(at, turns.length - 1)]?.tools.lastChild ?? more).focus();
  };
  const number = () => turns.forEach((turn, at) => {
    turn.number(at);
    turn.tools.replaceChildren(
      button("Up", () => move(turn, -1), { kind: "small", disabled: at === 0, "aria-label": `Move turn ${at + 1} up` }),
      button("Down", () => move(turn, 1), { kind: "small", disabled: at === turns.length - 1, "aria-label": `Move turn ${at + 1} down` }),
      button("Remove", () => remove(turn), { kind: "small danger", "aria-label": `Remove turn ${at + 1}` }));
  });
  const more = button("Add a turn", () => add({ caller: "" }));
  for (const turn of data) add(turn, { focus: false });
  return {
    boxes: [list, more],
    read: () => turns.map((turn) => turn.read()),
    showDecisions: (shown) => turns.forEach((turn) => turn.showDecisions(shown)),
  };
}

const objects = (value) => (Array.isArray(value) ? value : []).filter((each) => each && typeof each === "object");

/** The form of a case, whose `read()` gives the case; it raises an ApiError for JSON that can't be read. */
export function caseForm(data, definition) {
  const nodes = nodesOf(definition);
  const { opening, turns, expect, ...about } = data;
  const main = part(about, [
    ["name", "text", "Name", { maxlength: "200", required: true }],
    ["model", "choice", "What the agent speaks with", { options: MODELS }],
    ["context", "values", "Known before the call", { add: "Add a value" }],
  ], { title: "What tools answer, the time of the call, and more", help: "The members tools, fetch, at and direction of a file of tests." });
  const model = main.fields.model.querySelector("select");
  if (!data.model) model.value = MODELS[0][0];
  const isPlayed = () => model.value === "played";
  const first = expected(opening ?? {}, nodes, "More of the beginning");
  const then = turnsForm(objects(turns), nodes, isPlayed);
  const last = part(expect ?? {}, [
    ["disposition", "text", "Result", { help: "Its code, such as user_qualified (talked to the end), user_hangup (caller hung up) or do_not_call. Empty: any." }],
    ["nodes", "lines", "Steps passed", { help: "All of them in order, one on each line. Empty: any." }],
    ["edges", "lines", "Paths taken", { help: "All of them in order, one on each line. Empty: any." }],
    ["tags", "lines", "Tags", { help: "All of them, one on each line. Empty: any." }],
    ["never", "lines", "The agent never says", { help: NEVER }],
    ["variables", "values", "Answers", { add: "Add an answer" }],
  ], { title: "More that is expected", help: "Such as webhooks.", seldom: ["never", "tags", "nodes", "edges"] });
  const [begin, end, head] = [
    fieldset("The beginning", first.boxes),
    fieldset("In the end", last.fields.disposition, last.fields.variables, last.rest),
    h("div", {}, fields(main.fields.name, main.fields.model), main.fields.context, main.rest),
  ];
  placeAt(head, "case");
  placeAt(begin, "case.opening");
  placeAt(end, "case.expect");
  const showDecisions = () => {
    first.showDecisions(isPlayed());
    then.showDecisions(isPlayed());
  };
  model.addEventListener("change", showDecisions);
  showDecisions();
  const element = h("div", { class: "case-form" }, head, begin, then.boxes, end);
  element.read = () => {
    const [{ model: speaks, ...rest }, opened, ended] = [main.read(), first.read(), last.read()];
    return {
      ...rest,
      ...(speaks === MODELS[0][0] && !data.model ? {} : { model: speaks }), // which speaks if a case names none
      ...(Object.keys(opened).length ? { opening: opened } : {}),
      turns: then.read(),
      ...(Object.keys(ended).length ? { expect: ended } : {}),
    };
  };
  return element;
}

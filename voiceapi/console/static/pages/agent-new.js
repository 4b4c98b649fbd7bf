// A new agent: one question, templates by purpose, and other ways to begin. What is made is looked at first, or talked to.

import { api } from "../app/api.js";
import { go } from "../app/router.js";
import { button, details, field, fieldset, formWith, link, section, showWhenReady, textarea } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { oneAfterAnother } from "../parts/unsaved.js";
import { fromFile, fromNothing } from "./agents/other-ways.js";
import { proposal } from "./agents/proposal.js";
import { DIRECTIONS, firstWords, templates } from "./agents/templates.js";
import { modelInUse } from "./setup/model-settings.js";

const LONGEST_NAME = 60;

export default async function newAgent({ root, signal, title }) {
  title("New agent", [["Agents", "/agents"]]);
  const model = await api.get("/organizations/model-configurations/v2", { signal });
  const box = textarea("", {
    rows: "3", maxlength: "8000",
    placeholder: "Answer the calls of a dental practice: ask who calls and why, and offer Tuesday at ten or Thursday at four.",
  });
  const cards = h("div");
  const begin = h("div", { class: "stack" });
  const next = oneAfterAnother(signal); // who looks at something else waits for the model no longer
  const shown = h("div", { hidden: true });

  const open = ({ id }, talks) => go(talks ? `/agents/${id}/talk?start` : `/agents/${id}`);
  const create = async (body, talks) => open(await api.post("/workflow/create/definition", { body, signal }), talks);

  /** Show what may be kept in the place of all else, until somebody goes back to `opener`. */
  async function look(given, opener) {
    const back = () => {
      shown.hidden = true;
      begin.hidden = false;
      opener.focus();
    };
    const view = await proposal({ ...given, create, back, signal });
    show(shown, view);
    begin.hidden = true;
    shown.hidden = false;
    window.scrollTo(0, 0);
    view.querySelector("h2").focus();
  }

  const form = modelInUse(model).isScripted ? byTemplate(box, open, signal) : byDescription(box, look, next);
  show(begin,
    h("div", { class: "card" }, form),
    section("Or begin with a template", cards),
    details("Other ways to begin", h("div", { class: "columns" },
      section("From a file", fromFile(create)), section("From nothing", fromNothing(create)))));
  show(root, begin, shown);
  box.focus();
  await showWhenReady(cards, api.get("/workflow/examples", { signal }), (examples) => templates(examples, box, {
    make: (example) => create(bodyOf(example), true),
    look: (example, opener) => {
      next();
      return look({ body: bodyOf(example), purpose: example.purpose, goBack: "Back to the templates" }, opener);
    },
  }));
}

/** What an agent is made of that is as an example. */
function bodyOf({ name, workflow_definition, workflow_configurations, tools, cases }) {
  return { name, workflow_definition, workflow_configurations, tools, cases };
}

/** The question, where a language model makes an agent to the description. */
function byDescription(box, look, next) {
  const waiting = h("div", { class: "actions", role: "status" });
  const describe = async () => {
    const until = next();
    const cancel = button("Cancel", () => next());
    const description = box.value.trim();
    show(waiting, h("span", { class: "loading" }, "The language model makes a draft of it, which may take a minute or two…"), cancel);
    cancel.focus();
    let made;
    try {
      made = await api.post("/workflow/describe", { body: { description }, signal: until });
    } finally {
      show(waiting);
      box.focus();
    }
    const body = { name: shortened(description), workflow_definition: made.workflow_definition, workflow_configurations: { voice: "natural" } };
    await look({ ...made, body, purpose: description, isWork: true, goBack: "Try another description" }, box);
  };
  return formWith({ submit: "Show me the agent", act: describe },
    field("What should it do?", box, { name: "description", required: true, help: "What you would tell a new colleague. You see the agent before it is kept." }),
    waiting);
}

/** The question without a language model: the general template takes what is typed as its task. */
function byTemplate(box, open, signal) {
  const choice = (value, isChosen) => h("label", { class: "inline" },
    h("input", { type: "radio", name: "call_type", value, checked: isChosen }), ` ${DIRECTIONS[value]}`);
  const make = async (form, how) => {
    const call_type = form.elements.call_type.value;
    const body = { call_type, use_case: "", activity_description: box.value.trim() };
    open(await api.post("/workflow/create/template", { body, signal }), how !== "stay");
  };
  return formWith({
    submit: "Make it and talk", act: make, beside: h("button", { type: "submit", class: "button", value: "stay" }, "Make it"),
  },
  field("What should it do?", box, { name: "activity_description", required: true, help: "What you would tell a new colleague." }),
  fieldset("Who calls?", h("div", { class: "actions" }, choice("inbound", true), choice("outbound", false))),
  h("p", { class: "quiet" },
    "Without a language model it says a few sentences that fit any task. With one, a whole agent is made to your words. ",
    link("Choose a language model", "/settings/models")));
}

/** The beginning of a text, as a name. */
function shortened(text) {
  const whole = text.replace(/\s+/g, " ");
  if (whole.length <= LONGEST_NAME) return whole.replace(/\.$/, "");
  const beginning = whole.slice(0, LONGEST_NAME);
  return `${beginning.slice(0, beginning.lastIndexOf(" ")) || beginning}…`;
}

// What an agent demands of a draft before it can be published: the fields of its settings, and what a draft lacks.

import { callout, checkbox, field, fieldset, input, link, numberIn, select } from "../parts/components.js";
import { h } from "../parts/dom.js";

const LINT = [
  ["", "Any may be there"],
  ["errors", "No errors"],
  ["warnings", "No errors and no warnings"],
];
const COVERAGE = [["nodes", "Steps"], ["edges", "Paths"], ["variables", "Variables"]];
const NAME = "publish_requirements";
const PLACE = `workflow_configurations.${NAME}`;

/** The fields; `configurations` of `state` is changed in place, and `changed` is called after each change. */
export function publishRequirements(state, changed) {
  const given = state.configurations[NAME] ?? {};
  const lint = select(LINT, given.lint ?? "");
  const cases = checkbox(given.cases);
  const shares = COVERAGE.map(([kind, label]) =>
    [kind, label, input({ type: "number", min: "0", max: "100", step: "any", value: given.coverage?.[kind] ?? "" })]);
  const read = () => {
    const coverage = Object.fromEntries(shares.map(([kind, , control]) => [kind, numberIn(control)]).filter(([, share]) => share !== null));
    const found = {
      ...(lint.value && { lint: lint.value }),
      ...(cases.checked && { cases: true }),
      ...(Object.keys(coverage).length && { coverage }),
    };
    if (Object.keys(found).length) state.configurations[NAME] = found;
    else delete state.configurations[NAME];
    changed();
  };
  for (const control of [lint, cases, ...shares.map(([, , each]) => each)]) control.addEventListener("input", read);
  return fieldset("Required before publishing",
    h("p", { class: "help" }, "A draft that falls short can't be published, neither here nor by a program."),
    field("Findings", lint, { name: `${PLACE}.lint` }),
    field("All tests that are switched on pass", cases, { name: `${PLACE}.cases` }),
    h("div", { class: "fields" }, shares.map(([kind, label, control]) =>
      field(`${label} that the tests reach, in %`, control, { name: `${PLACE}.coverage.${kind}`, help: "Empty: nothing is required." }))));
}

/** Of the errors that publishing a draft was refused with, those about what is demanded, and those of the draft itself. */
export function sorted(errors) {
  const isDemand = (error) => error.field?.startsWith(`${NAME}.`) ?? false;
  return { lacking: errors.filter(isDemand), broken: errors.filter((error) => !isDemand(error)) };
}

/** What a draft lacks, with the ways to mend it. `more`: further links and buttons. */
export function lackingView(lacking, agent, ...more) {
  const isOfCases = lacking.some((error) => error.field !== `${NAME}.lint`);
  return callout(
    h("p", {}, "Not published: the draft doesn't meet yet what this agent requires."),
    h("ul", {}, lacking.map((error) => h("li", {}, error.message))),
    h("div", { class: "actions" }, isOfCases && link("Go to its tests", `/agents/${agent}/tests`, { class: "button" }), more));
}

// An agent that may be kept: its picture, how it begins, what is said of it, and what it can't do.

import { looking } from "../../builder/looking.js";
import { badge, button, callout, field, formWith, input } from "../../parts/components.js";
import { h } from "../../parts/dom.js";
import { askBeforeLeaving } from "../../parts/unsaved.js";
import { firstWords } from "./templates.js";

/**
 * `body` is what `create(body, talks)` makes the agent of; `errors`, `warnings` and `not_done` are as the service answers a
 * description; `back()` is called by the button `goBack`. `isWork`: that it isn't kept yet is said before the page is left.
 */
export async function proposal({ body, purpose, errors = [], warnings = [], not_done: lacking = [], isWork = false, goBack, create, back, signal }) {
  const drawn = await looking(body.workflow_definition, { label: `Drawing of ${body.name}`, signal });
  const first = firstWords(body.workflow_definition);
  const name = input({ value: body.name, maxlength: "500" });
  const left = new AbortController();
  let isKept = !isWork;
  const keep = async (_, how) => {
    await create({ ...body, name: name.value.trim() }, how !== "stay");
    isKept = true;
  };
  const save = () => keep(null, "stay").then(() => true, () => false);
  askBeforeLeaving(AbortSignal.any([left.signal, signal]), () => !isKept, save);
  const finding = (kind, text) => ({ kind: of, id, message }) => h("li", {}, badge(text, kind), " ", message, " ",
    of !== "workflow" && id !== null && button("Show it", () => drawn.choose(of, id), { kind: "small", "aria-label": `Show where: ${message}` }));
  return h("section", { class: "card stack" },
    h("h2", { tabindex: "-1" }, "This is how it would go"),
    h("p", { class: "quiet" }, purpose),
    first && h("p", { class: "said agent" }, h("span", { class: "who" }, "It begins with"), first),
    drawn.element,
    lacking.length > 0 && callout(h("strong", {}, "What it can't do:"), h("ul", {}, lacking.map((each) => h("li", {}, each)))),
    errors.length + warnings.length > 0 && h("ul", { class: "plain-list", "aria-label": "Problems" },
      errors.map(finding("bad", "Error")), warnings.map(finding("busy", "Warning"))),
    formWith({
      submit: "Keep it and talk", act: keep,
      beside: [
        h("button", { type: "submit", class: "button", value: "stay" }, "Keep it"),
        button(goBack, () => {
          left.abort();
          back();
        }),
      ],
    }, field("The agent's name", name, { name: "name", required: true })));
}

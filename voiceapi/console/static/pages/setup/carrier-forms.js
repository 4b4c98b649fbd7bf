// The form of an account at a carrier, made from what the service says about its carrier.

import { checkbox, field, input, numberIn, select, textarea } from "../../parts/components.js";
import { h } from "../../parts/dom.js";

function controlOf(described, value) {
  const props = { placeholder: described.placeholder ?? "", spellcheck: "false", autocomplete: "off" };
  if (described.type === "boolean") return checkbox(value);
  if (described.type === "select") return select(described.options.map((each) => [each.value, each.label]), value ?? described.options[0].value);
  if (described.type === "textarea") return textarea(value ?? "", { ...props, rows: "6", class: "code" });
  return input({ ...props, value: value ?? "" });
}

/**
 * The fields of a carrier's credentials. `stored`: the credentials as the service shows them, with masks for secrets; a
 * mask that is sent back keeps the secret. `settings`: the configuration's `calls_per_second` and `country`. `read()` of
 * the element gives the `config` of a request.
 */
export function credentialFields(carrier, stored = {}, settings = {}) {
  const known = carrier.fields.filter((each) => each.type !== "string-array"); // numbers have a list of their own
  const controls = known.map((each) => [each, controlOf(each, stored[each.name])]);
  const speed = input({ type: "number", min: "0.001", step: "any", value: settings.calls_per_second ?? "", inputmode: "decimal" });
  const country = input({ maxlength: "2", placeholder: "US", value: settings.country ?? "", autocomplete: "off" });
  const help = (each) => [each.description, each.sensitive && stored[each.name] && "The stars stand for what is stored; leave them to keep it."].filter(Boolean).join(" ");
  const element = h("div", {},
    controls.map(([each, control]) => field(each.label, control, {
      name: `config.${carrier.provider}.${each.name}`, required: each.required, help: help(each) || null,
    })),
    field("Calls to begin in a second, at most", speed, {
      name: `config.${carrier.provider}.calls_per_second`, help: "Empty: as many as the carrier allows.",
    }),
    field("Country", country, {
      name: `config.${carrier.provider}.country`,
      help: "Two letters, such as US: numbers without + and country code are taken to be of this country. Empty: that of the number that calls.",
    }));
  element.read = () => ({
    provider: carrier.provider,
    ...Object.fromEntries(controls.map(([each, control]) => {
      if (each.type === "boolean") return [each.name, control.checked];
      const text = control.value.trim();
      return [each.name, text || (each.required ? "" : null)];
    })),
    calls_per_second: numberIn(speed),
    country: country.value.trim() || null,
  });
  return element;
}

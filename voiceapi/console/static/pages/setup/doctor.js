// What prevents calls, as the service finds it by asking the carriers and the model.

import { api } from "../../app/api.js";
import { badge, button, section, showWhenReady, table } from "../../parts/components.js";
import { h } from "../../parts/dom.js";

/** The badge of a finding: wrong, advice, good, or not checked for want of time. */
export function findingBadge({ wrong, note }) {
  if (wrong) return badge("wrong", "bad");
  if (note?.startsWith("advice: ")) return badge("advice", "busy");
  return note && !note.startsWith("good") ? badge("not checked", "busy") : badge("good", "good");
}

/** What is to be said about a finding besides its badge. */
export function findingText({ wrong, note }) {
  return wrong ?? note?.replace(/^(advice: |good, )/, "") ?? "";
}

/** The findings about all that calls depend on, or about one telephony configuration. */
export function findings(signal, configuration = null) {
  const place = h("div", { "aria-live": "polite" });
  const query = { telephony_configuration_id: configuration };
  const ask = () => showWhenReady(place, api.get("/organizations/doctor", { query, signal }), (found) => table("Findings", [
    ["What", (each) => each.subject],
    ["State", findingBadge],
    ["Finding", findingText],
  ], found.findings));
  ask();
  return section("What the doctor says", place, h("div", { class: "actions" }, button("Check again", ask)));
}

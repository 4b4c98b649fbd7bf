// What prevents calls, as the service finds it by asking the carriers and the model.

import { api } from "../../app/api.js";
import { badge, button, coded, link, section, showWhenReady, table } from "../../parts/components.js";
import { h } from "../../parts/dom.js";

/** The page on which a finding can be mended; null if there is none. */
function placeOf({ subject, telephony_configuration_id: carrier }) {
  if (carrier !== null) return `/carriers/${carrier}`;
  const places = { "public address": "/carriers/connect", "language model": "/settings/models", "limits of": "/settings/preferences" };
  return places[Object.keys(places).find((each) => subject.startsWith(each))] ?? null;
}

/** What was checked, as people call it, with a link to where it is set up. */
export function findingName(finding) {
  const name = finding.subject
    .replace(/^configuration \d+ (["'])(.*)\1 \(\w+\)/, "Carrier account “$2”")
    .replace(/, default for outbound calls$/, ", which makes calls unless another one is chosen")
    .replace(/, takes outbound calls, since the default can't$/, ", which makes calls, since the usual one can't")
    .replace(/^limits of outbound calls/, "Limits of what calls may cost")
    .replace(/^public address /, "Address at which carriers reach this service: ")
    .replace(/^language model of the (service|organization)/, "Language model");
  return placeOf(finding) ? link(name, placeOf(finding)) : name;
}

/** The badge of a finding: a problem, advice, good, or not checked for want of time. */
export function findingBadge({ wrong, note }) {
  if (wrong) return badge("problem", "bad");
  if (note?.startsWith("advice: ")) return badge("advice", "busy");
  return note && !note.startsWith("good") ? badge("not checked", "busy") : badge("works", "good");
}

/** What is to be said about a finding besides its badge. */
export function findingText({ wrong, note }) {
  return coded(wrong ?? note?.replace(/^(advice: |good, )/, "") ?? "");
}

/** The findings about all that calls depend on, or about one telephony configuration. */
export function findings(signal, configuration = null) {
  const place = h("div", { "aria-live": "polite" });
  const query = { telephony_configuration_id: configuration };
  const ask = () => showWhenReady(place, api.get("/organizations/doctor", { query, signal }), (found) => table("What was checked", [
    ["Checked", findingName],
    ["Result", findingBadge],
    ["What to know", findingText],
  ], found.findings));
  ask();
  return section("Checked just now",
    h("p", { class: "quiet" }, "The service has asked the carriers and the language model themselves: what is set up completely may still not work."), place, h("div", { class: "actions" }, button("Check again", ask)));
}

// The preferences of the organization: when it calls, and what its calls may cost.

import { ApiError } from "../app/api.js";
import { Edited } from "../app/edited.js";
import { go } from "../app/router.js";
import { letSaveItself, savesItself } from "../builder/draft.js";
import { checkbox, field, fieldset, formWith, input, notify, section, textarea } from "../parts/components.js";
import { h, show, uniqueId } from "../parts/dom.js";

export default async function preferences({ root, signal, title }) {
  const record = await Edited.read("/organizations/preferences", signal);
  const stored = record.value;
  title("Preferences", [["Settings", "/settings"]]);
  const zones = h("datalist", { id: uniqueId("zones") },
    (Intl.supportedValuesOf?.("timeZone") ?? []).map((zone) => h("option", { value: zone })));
  const timezone = input({ value: stored.timezone ?? "", list: zones.id, spellcheck: "false" });
  const phone = input({ type: "tel", value: stored.test_phone_number ?? "" });
  const [start, end] = ["start", "end"].map((each) => input({ type: "time", value: stored.calling_hours?.[each] ?? "" }));
  const attempts = input({ type: "number", min: "1", value: stored.max_attempts_per_day ?? "" });
  const calls = input({ type: "number", min: "1", value: stored.max_calls_a_day ?? "" });
  const countries = textarea((stored.allowed_countries ?? []).join(" "), { rows: "2", spellcheck: "false" });
  const codes = () => countries.value.split(/[\s,;]+/).filter(Boolean);
  const hours = () => {
    if (!start.value && !end.value) return null;
    if (start.value && end.value) return { start: start.value, end: end.value };
    throw new ApiError(422, [{ loc: ["body", "calling_hours", start.value ? "end" : "start"], msg: "Give both, or neither." }]);
  };

  const save = async () => {
    await record.send("PUT", {
      ...stored,
      timezone: timezone.value.trim() || null,
      test_phone_number: phone.value.trim() || null,
      calling_hours: hours(),
      max_attempts_per_day: number(attempts),
      max_calls_a_day: number(calls),
      allowed_countries: codes().length ? codes() : null,
    });
    notify("The preferences are saved.");
  };

  const itself = checkbox(savesItself(), { id: uniqueId("itself") });
  itself.addEventListener("change", () => letSaveItself(itself.checked));
  const asks = record.asks("This page was", () => go("/settings/preferences"));
  show(root, section("For all agents and campaigns", formWith({ submit: "Save", act: save, saves: signal, asks },
    h("div", { class: "fields" },
      field("Time zone", timezone, { name: "timezone", help: "New campaigns begin with it. A name such as Europe/Berlin." }),
      field("Your telephone number", phone, {
        name: "test_phone_number",
        help: "It is called when you let an agent call without giving a number. With + and country code, such as +12025550123.",
      })),
    zones,
    fieldset("Limits of what calls may cost",
      h("p", { class: "help" }, "If a key gets into wrong hands, nobody can call expensive numbers with it all night."),
      h("div", { class: "fields" },
        field("Countries that may be called", countries, {
          name: "allowed_countries",
          help: "Codes of two letters, such as US DE. Empty: every country.",
        }),
        field("Most calls in 24 hours, of all agents together", calls, { name: "max_calls_a_day", help: "Empty: no limit." }))),
    fieldset("Calling lists of people (campaigns)",
      h("p", { class: "help" }, "A campaign can have rules of its own. Then both count."),
      h("div", { class: "fields" },
        field("Call between", start, { name: "calling_hours.start", help: "On the clock of whoever is called." }),
        field("and", end, { name: "calling_hours.end", help: "May be after midnight. Both empty: at any time of the day." }),
        field("Most calls to one person in 24 hours", attempts, { name: "max_attempts_per_day", help: "Empty: no limit." }))))),
  section("In this browser",
    h("div", { class: "check-line" }, itself, h("label", { for: itself.id }, "Changes of agents save themselves")),
    h("p", { class: "help" }, "Two seconds after the last change, and before you leave the page. They are saved as a draft: calls keep the published version.")));
}

/** What a number field holds; null if it is empty. The service refuses what is out of range. */
function number(control) {
  if (control.validity.badInput) return control.value || "no number";
  return control.value === "" ? null : Number(control.value);
}

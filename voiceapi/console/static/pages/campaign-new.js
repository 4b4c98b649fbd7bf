// A new campaign down one page: whom it calls, who calls, when, and what will happen. Nothing is made before its buttons.

import { ApiError, api } from "../app/api.js";
import { go } from "../app/router.js";
import {
  badge, callout, checkbox, debounced, emptyState, field, fileDrop, formWith, input, link, notify, section, select, showErrors, table, textarea,
} from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { oneAfterAnother } from "../parts/unsaved.js";
import { dayAndTime, forecast, zoneOf } from "./campaigns/campaign-dry-run.js";
import { firstSettings, hoursInWords, settingsFields } from "./campaigns/campaign-settings.js";
import { spreadsheet, textOf } from "./campaigns/spreadsheet.js";

const PHONE_NUMBER = "phone_number";
// Columns that have a meaning of their own.
const MEANINGS = {
  timezone: "the person's time zone",
  greeting_override_type: "a greeting for this person",
  greeting_override_text: "a greeting for this person",
  greeting_override_recording_id: "a greeting for this person",
};
const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`;
const alike = (name) => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");

export default async function campaignNew({ root, query, signal, title }) {
  title("New campaign", [["Campaigns", "/campaigns"]]);
  const [agents, { configurations }, defaults, preferences] = await Promise.all([
    api.get("/workflow/summary", { query: { status: "active" }, signal }),
    api.get("/organizations/telephony-configs", { signal }),
    api.get("/organizations/campaign-defaults", { signal }),
    api.get("/organizations/preferences", { signal }),
  ]);
  if (!agents.length) {
    show(root, emptyState("A campaign needs an agent to talk to its contacts.", link("Make an agent", "/agents/new", { class: "button primary" })));
    return;
  }
  const usable = configurations.filter((each) => each.is_ready_for_outbound && !each.inactive);
  if (!usable.length) {
    show(root, emptyState("No carrier account can call people yet.", link("See the carrier accounts", "/carriers", { class: "button primary" })));
    return;
  }
  let list = null; // what was pasted or chosen: a `spreadsheet` with `uses`, what each column is for
  let checked = null; // what the service says about it
  const name = input({ maxlength: "255" });
  const agent = select(agents.map((each) => [String(each.id), each.name]), query.get("agent") ?? String(agents[0].id));
  const main = usable.find((each) => each.is_default_outbound) ?? usable[0];
  const carrier = select(usable.map((each) => [String(each.id), `${each.name} (${each.provider})`]), String(main.id));
  const pasted = textarea("", { rows: "5", spellcheck: "false", placeholder: "phone_number\tfirst_name\n+12025550123\tAda" });
  const columns = h("div");
  const result = h("div", { class: "result", "aria-live": "polite" });
  const future = h("div", { class: "result", "aria-live": "polite" });
  const settings = settingsFields(firstSettings(defaults, preferences.timezone ?? undefined), defaults.concurrent_call_limit, preferences.timezone ?? undefined);

  /** The form of the list as it is used, for a check, a dry run and a campaign. */
  const listForm = () => {
    const numbers = list.uses.find((use) => use.isNumber);
    const form = new FormData();
    form.set("file", new File([list.write(list.uses.map((use) => use.name))], list.file), list.file);
    form.set("workflow_id", agent.value);
    form.set("telephony_configuration_id", carrier.value);
    if (numbers && numbers.name.toLowerCase() !== PHONE_NUMBER) form.set("phone_number_column", numbers.name);
    return form;
  };
  const wholeForm = () => {
    if (!list) throw new ApiError(422, [{ loc: ["body", "file"], msg: "Paste a list or choose a file first." }]);
    const form = listForm();
    form.set("name", name.value.trim());
    for (const [key, value] of Object.entries(settings.read())) {
      if (value !== null) form.set(key, typeof value === "object" ? JSON.stringify(value) : String(value));
    }
    return form;
  };

  function take(text, file, title, isHeading = null) {
    showErrors(element, null);
    checked = null;
    foresee();
    const found = spreadsheet(text, isHeading);
    list = found && {
      ...found, file, again: (is) => take(text, file, title, is),
      uses: found.columns.map((column, at) => ({
        name: column.name || (column.isNumber ? PHONE_NUMBER : found.hasHeading ? "" : `column ${at + 1}`), isNumber: column.isNumber,
      })),
    };
    // Of two columns with one name the service takes the last.
    list?.uses.forEach((use, at) => {
      const isTaken = list.uses.slice(0, at).some((each) => each.name.toLowerCase() === use.name.toLowerCase());
      if (use.name && isTaken) use.name = `${use.name} (column ${at + 1})`;
    });
    show(columns);
    show(result);
    if (!list) return;
    if (!name.value) name.value = title;
    check();
  }

  const nextCheck = oneAfterAnother(signal);
  /** Ask the service about the list, then for the dry run; of several questions only the last is answered. */
  async function check() {
    if (!list) return;
    outdate();
    const current = nextCheck();
    show(result, h("p", { class: "loading" }, "Checking the list…"));
    try {
      checked = await api.post("/campaign/check/csv", { form: listForm(), signal: current });
      if (matchVariables()) checked = await api.post("/campaign/check/csv", { form: listForm(), signal: current });
      showColumns();
      show(result, checkedView(checked));
      await foresee();
    } catch (error) {
      if (error.name !== "AbortError") show(result, refusal(error.message));
    }
  }

  /** Use columns such as "First name" as the variable first_name that the agent needs; true if there was one. */
  function matchVariables() {
    const missing = checked.variables.filter((each) => !each.is_column);
    const found = missing.map((each) => [each, list.uses.find((use, at) => !use.isNumber && !use.isChosen && alike(list.columns[at].name) === alike(each.name))])
      .filter(([, use]) => use);
    for (const [each, use] of found) use.name = each.name;
    return found.length > 0;
  }

  function showColumns() {
    const needed = checked.variables.map((each) => each.name);
    const choice = (use, at) => {
      const own = list.columns[at].name || `column ${at + 1}`;
      const others = needed.filter((each) => each !== own.toLowerCase());
      const options = [
        ["number", "the number to call"], ["own", `${own}${needed.includes(own.toLowerCase()) ? ", which the agent needs" : MEANINGS[own.toLowerCase()] ? `: ${MEANINGS[own.toLowerCase()]}` : ""}`],
        ...others.map((each) => [`as ${each}`, `${each}, which the agent needs`]), ["", "Ignore it"],
      ];
      const now = use.isNumber ? "number" : use.name === "" ? "" : others.includes(use.name) ? `as ${use.name}` : "own";
      const control = select(options, now, { "aria-label": `What the column ${own} is` });
      control.addEventListener("change", () => {
        const isNumber = control.value === "number";
        if (isNumber) for (const each of list.uses) each.isNumber = false;
        const names = { number: list.columns[at].name || PHONE_NUMBER, own, "": "" };
        list.uses[at] = { name: names[control.value] ?? control.value.slice(3), isNumber, isChosen: true };
        check();
      });
      return control;
    };
    const heading = checkbox(list.hasHeading);
    heading.addEventListener("change", () => list.again(heading.checked));
    const rows = list.columns.map((column, at) => ({ ...column, at, use: list.uses[at] }));
    show(columns,
      field("The first row has the names of the columns", heading),
      !list.hasHeading && callout("The first row is called like the others: say what each column is."),
      table("Columns of the list", [
        ["Column", ({ name: own, at }) => own || `column ${at + 1}`],
        ["For example", ({ samples }) => samples.join(", ")],
        ["What it is", ({ use, at }) => choice(use, at)],
      ], rows));
  }

  const nextLook = oneAfterAnother(signal);
  /** Take away the button that starts calling, because something has changed since the sentence above it was true. */
  function outdate() {
    start.hidden = true;
    return nextLook();
  }

  /** Show what will happen, by a dry run that stores nothing. What is shown stays until the next answer, without its button. */
  async function foresee() {
    const current = outdate();
    if (!checked || checked.refusal || checked.rows === checked.skipped_count) {
      show(future);
      return;
    }
    try {
      const form = wholeForm();
      if (!name.value.trim()) form.set("name", "?");
      const found = await api.post("/campaign/simulate/csv", { form, signal: current });
      const people = Object.values(found.contacts).reduce((sum, count) => sum + count, 0) - found.contacts.skipped;
      // The rows that the list itself is to blame for stand above.
      const others = found.skipped_contacts.filter((each) => each.code !== "row_skipped");
      start.textContent = `Start calling ${plural(people, "person", "people")}`;
      start.hidden = !people;
      show(future, h("p", { class: "what-happens" }, sentence(people, found)),
        forecast({ ...found, skipped_contacts: others }, zoneOf(settings.read().schedule_config)));
    } catch (error) {
      if (error.name !== "AbortError") show(future, refusal(error.message));
    }
  }

  function sentence(people, found) {
    const wanted = settings.read();
    const zone = zoneOf(wanted.schedule_config);
    const hours = hoursInWords(wanted, preferences);
    const most = wanted.max_concurrency ?? defaults.concurrent_call_limit;
    return [
      `${plural(people, "person is", "people are")} called by “${agent.selectedOptions[0].text}” through ${carrier.selectedOptions[0].text}, `,
      `at most ${most} at the same time, ${hours.length ? hours.join(", and ") : "at any time of the day and night"}. `,
      found.first_call_at ? `If you start now, the first call is placed ${dayAndTime(found.first_call_at, zone)}` : "Nobody is called within 14 days",
      found.ends_at && found.first_call_at ? `, and with calls of about a minute it is done ${dayAndTime(found.ends_at, zone)}.` : ".",
    ].join("");
  }

  const drop = fileDrop("Drop a CSV file here, or choose it.", async (file) => {
    try {
      take(await textOf(file), file.name || "contacts.csv", file.name.replace(/\.\w+$/, ""));
      pasted.value = "";
    } catch (error) {
      list = checked = null;
      foresee();
      show(columns);
      show(result, refusal(error.message));
    }
  }, { accept: ".csv,.tsv,.txt,.xlsx,text/csv,text/plain" });
  const takePasted = () => take(pasted.value, "contacts.csv", `Contacts of ${new Date().toLocaleDateString()}`);
  pasted.addEventListener("input", debounced(takePasted));
  // Browsers take many seconds to insert ten thousand rows as if they were typed.
  pasted.addEventListener("paste", (event) => {
    if (pasted.selectionEnd - pasted.selectionStart < pasted.value.length) return;
    event.preventDefault();
    pasted.value = event.clipboardData.getData("text/plain");
    takePasted();
  });

  const start = h("button", { type: "submit", class: "button primary", value: "start", hidden: true });
  const element = formWith({ submit: "Keep it, and start later", kind: "", saves: signal, beside: start, act: async (_, how) => {
    const { id } = await api.post("/campaign/create/csv", { form: wholeForm(), signal });
    // It is kept now: should only its start fail, its page says so and has the button.
    if (how === "start") await api.post(`/campaign/${id}/start`, { signal }).catch((error) => notify(error.message, "error"));
    go(`/campaigns/${id}`);
  } },
    section("1. Whom to call",
      h("div", { class: "columns" },
        field("Paste rows from a spreadsheet", pasted, { help: "Mark the cells with their headings in Excel, Google Sheets or LibreOffice, copy them, and paste them here." }),
        field("Or take a file", drop, { name: "file" })),
      result, columns),
    section("2. Who calls",
      h("div", { class: "fields" },
        field("Agent", agent, { name: "workflow_id", required: true }),
        field("Carrier account", carrier, { name: "telephony_configuration_id", required: true }))),
    section("3. When, and how often", settings),
    section("4. What will happen", field("Name of the campaign", name, { name: "name", required: true }), future,
      h("p", { class: "quiet" }, "Nobody is called before you press a button that says so.")));
  agent.addEventListener("change", check);
  carrier.addEventListener("change", check);
  settings.addEventListener("input", debounced(foresee));
  // All but the name leads to another dry run, in a moment.
  element.addEventListener("input", (event) => event.target !== name && outdate());
  // Enter in a field would press the first button of the form.
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches("input")) event.preventDefault();
  });
  show(root, element);
}

/** Why the list makes no campaign. Unlike the alerts of the form it stays until another list is chosen. */
function refusal(text) {
  return h("p", { class: "refusal" }, text);
}

/** What the service says about a list. */
function checkedView(found) {
  const empty = found.variables.filter((each) => each.empty_rows > 0);
  return [
    found.refusal ? refusal(found.refusal) : null,
    h("p", { class: "list-count" }, badge(`${plural(found.rows - found.skipped_count, "person", "people")} will be called`, found.refusal ? "" : "good"), " ",
      found.skipped_count > 0 && badge(`${plural(found.skipped_count, "row is", "rows are")} skipped`, "bad"), " ",
      empty.map((each) => [badge(`${each.name} is empty in ${plural(each.empty_rows, "row", "rows")}`, "bad"), " "])),
    found.skipped.length ? [
      table("Rows that will be skipped", [
        ["Row", (row) => String(row.row), { number: true }],
        ["Number", (row) => row.phone_number],
        ["Why", (row) => row.skipped],
      ], found.skipped),
      found.skipped_count > found.skipped.length && callout(`These are the first ${found.skipped.length} of ${found.skipped_count}.`),
    ] : null,
  ];
}

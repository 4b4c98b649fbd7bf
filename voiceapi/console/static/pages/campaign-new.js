// A new campaign: a contact list, checked against the agent, and the settings to call it with.

import { ApiError, api } from "../app/api.js";
import { go } from "../app/router.js";
import {
  badge, callout, checkbox, emptyState, facts, field, fileDrop, formWith, input, link, section, select,
  showErrors, table,
} from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { settingsFields } from "./campaigns/campaign-settings.js";

const PHONE_NUMBER = "phone_number";
// Columns that have a meaning of their own.
const MEANINGS = {
  timezone: "the contact's time zone, for calling hours",
  greeting_override_type: "a greeting for this contact",
  greeting_override_text: "a greeting for this contact",
  greeting_override_recording_id: "a greeting for this contact",
};

export default async function campaignNew({ root, query, signal, title }) {
  const [agents, { configurations }, defaults, preferences] = await Promise.all([
    api.get("/workflow/summary", { query: { status: "active" }, signal }),
    api.get("/organizations/telephony-configs", { signal }),
    api.get("/organizations/campaign-defaults", { signal }),
    api.get("/organizations/preferences", { signal }),
  ]);
  title("New campaign", [["Campaigns", "/campaigns"]]);
  if (!agents.length) {
    show(root, emptyState("A campaign needs an agent to talk to its contacts.", link("Make an agent", "/agents", { class: "button primary" })));
    return;
  }
  const usable = configurations.filter((each) => each.is_ready_for_outbound && !each.inactive);
  if (!usable.length) {
    show(root, emptyState("No carrier is ready for outbound calls yet.", link("See the carriers", "/carriers", { class: "button primary" })));
    return;
  }
  let file = null;
  let numbers = PHONE_NUMBER;
  const name = input({ maxlength: "255" });
  const agent = select(agents.map((each) => [String(each.id), each.name]), query.get("agent") ?? String(agents[0].id));
  const main = usable.find((each) => each.is_default_outbound) ?? usable[0];
  const carrier = select(usable.map((each) => [String(each.id), `${each.name} (${each.provider})`]), String(main.id));
  const strict = checkbox(false);
  const column = select([], "");
  const columnField = field("Column with the numbers", column, { name: "phone_number_column", required: true });
  columnField.hidden = true;
  const result = h("div", { class: "result", "aria-live": "polite" });
  const settings = settingsFields(
    { ...defaults.last_campaign_settings, retry_config: defaults.last_campaign_settings?.retry_config ?? defaults.default_retry_config },
    defaults.concurrent_call_limit,
    preferences.timezone ?? undefined,
  );

  /** What the form has about the list, for a check and for a campaign. */
  const listForm = () => {
    const form = new FormData();
    form.set("file", file, file.name || "contacts.csv");
    form.set("workflow_id", agent.value);
    form.set("telephony_configuration_id", carrier.value);
    if (numbers !== PHONE_NUMBER) form.set("phone_number_column", numbers);
    return form;
  };
  const offerColumns = (columns) => {
    const names = [...new Set(columns)].filter(Boolean);
    const options = names.map((each) => [each, each]);
    const isFound = names.includes(numbers);
    show(column, (isFound ? options : [["", "Choose it"], ...options]).map(([value, text]) => h("option", { value }, text)));
    column.value = isFound ? numbers : "";
    columnField.hidden = !names.length;
  };
  let checking = null;
  const check = async () => {
    if (!file) return;
    checking?.abort();
    checking = new AbortController();
    signal.addEventListener("abort", () => checking.abort(), { once: true });
    show(result, h("p", { class: "loading" }, "Checking the list…"));
    try {
      const found = await api.post("/campaign/check/csv", { form: listForm(), signal: checking.signal });
      offerColumns(found.columns);
      show(result, checked(found, agent.selectedOptions[0].text, numbers));
    } catch (error) {
      if (error.name === "AbortError") return;
      columnField.hidden = true;
      show(result, refusal(error.message));
    }
  };
  const drop = fileDrop("A CSV file with a column of phone numbers: drop it here, or choose it.", (chosen) => {
    file = chosen;
    numbers = PHONE_NUMBER;
    showErrors(element, null);
    if (!name.value) name.value = chosen.name.replace(/\.csv$/i, "");
    check();
  }, { accept: ".csv,text/csv,text/plain" });
  column.addEventListener("change", () => {
    numbers = column.value || PHONE_NUMBER;
    check();
  });
  agent.addEventListener("change", check);
  carrier.addEventListener("change", check);

  const create = async () => {
    if (!file) throw new ApiError(422, [{ loc: ["body", "file"], msg: "Choose a contact list first." }]);
    const form = listForm();
    form.set("name", name.value.trim());
    form.set("strict", String(strict.checked));
    for (const [key, value] of Object.entries(settings.read())) {
      if (value !== null) form.set(key, typeof value === "object" ? JSON.stringify(value) : String(value));
    }
    const made = await api.post("/campaign/create/csv", { form, signal });
    go(`/campaigns/${made.id}`);
  };
  const element = formWith({ submit: "Create the campaign", act: create, saves: signal, beside: h("span", { class: "quiet" }, "Nobody is called before you start it.") },
    section("Who calls",
      h("div", { class: "fields" },
        field("Agent", agent, { name: "workflow_id", required: true }),
        field("Carrier", carrier, { name: "telephony_configuration_id", required: true }))),
    section("Contact list",
      field("File", drop, { name: "file", required: true }),
      columnField,
      result,
      field("Refuse the list if any of its rows would be skipped", strict, { name: "strict" })),
    section("Name", field("Name of the campaign", name, { name: "name", required: true })),
    section("Settings", settings));
  show(root, element);
}

/** Why the list makes no campaign. Unlike the alerts of the form it stays until another list is chosen. */
function refusal(text) {
  return h("p", { class: "refusal" }, text);
}

/** What the service says about a list; `numbers`: the column with the numbers to call. */
function checked(found, agent, numbers) {
  const wanted = new Map(found.variables.map((each) => [each.name, each]));
  const use = (column) => {
    if (column === "") return "no name: it is left out";
    if (column === numbers) return "the number to call";
    if (column === PHONE_NUMBER) return `${numbers} is used instead`;
    return MEANINGS[column] ?? (wanted.has(column) ? `${agent} needs it` : "a variable of the conversation");
  };
  const note = (column) => {
    const empty = wanted.get(column)?.empty_rows;
    return empty ? badge(`empty in ${empty} ${empty === 1 ? "row" : "rows"}`, "bad") : "";
  };
  const missing = found.variables.filter((each) => !each.is_column);
  const columns = [
    ...found.columns.map((column) => ({ column, use: use(column), note: note(column) })),
    ...missing.map((each) => ({ column: each.name, use: `${agent} needs it`, note: badge("missing", "bad") })),
  ];
  const shown = Object.keys(found.preview[0]?.values ?? {}).filter((column) => column !== PHONE_NUMBER && column !== numbers).slice(0, 8);
  return [
    found.refusal ? refusal(found.refusal) : null,
    facts([
      ["Rows", String(found.rows)],
      ["To be called", String(found.rows - found.skipped_count)],
      ["Skipped", String(found.skipped_count)],
    ]),
    h("h3", {}, "Columns"),
    table("Columns of the list", [
      ["Column", (row) => h("code", {}, row.column || "(empty)")],
      ["What it is for", (row) => row.use],
      ["Note", (row) => row.note],
    ], columns),
    found.skipped.length ? [
      h("h3", {}, "Rows that will be skipped"),
      table("Rows that will be skipped", [
        ["Row", (row) => String(row.row), { number: true }],
        ["Number", (row) => row.phone_number],
        ["Why", (row) => row.skipped],
      ], found.skipped),
      found.skipped_count > found.skipped.length && callout(`These are the first ${found.skipped.length} of ${found.skipped_count}.`),
    ] : null,
    h("h3", {}, `The first ${found.preview.length === 1 ? "row" : `${found.preview.length} rows`}`),
    table("The first rows", [
      ["Row", (row) => String(row.row), { number: true }],
      ["Number", (row) => [row.phone_number, " ", row.skipped && badge("skipped", "bad")]],
      ...shown.map((column) => [column, (row) => row.values[column]]),
    ], found.preview),
  ];
}

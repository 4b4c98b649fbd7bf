// The filters of runs: their form, their names in the address, and the API's filters that they stand for.

import { codesIn, field, input, select, words } from "../../parts/components.js";
import { h } from "../../parts/dom.js";

const ANY = ["", "Any"];
// Attributes of the API's filters: [name in the address, attribute, the value of the criterion].
const FILTERS = [
  ["status", "status", (value) => ({ status: value })],
  ["disposition", "dispositionCode", (value) => ({ codes: list(value) })],
  ["tags", "callTags", (value) => ({ codes: list(value) })],
  ["direction", "callDirection", (value) => ({ status: value })],
  ["channel", "callChannel", (value) => ({ status: value })],
  ["caller", "callerNumber", (value) => ({ value })],
  ["called", "calledNumber", (value) => ({ value })],
  ["workflow", "workflowId", (value) => ({ value })],
  ["campaign", "campaignId", (value) => ({ value })],
  ["run", "runId", (value) => ({ value })],
];
const RANGES = [
  ["from", "to", "dateRange", "from", "to", moment],
  ["shortest", "longest", "duration", "min", "max", (text) => text],
  ["fewest", "most", "tokenUsage", "min", "max", (text) => text],
];
const NAMES = [...FILTERS.map(([name]) => name), ...RANGES.flatMap(([from, to]) => [from, to])];
const LABELS = {
  status: "State", workflow: "Agent", campaign: "Campaign", direction: "Direction", channel: "By", disposition: "Came out as",
  tags: "Tags", caller: "Calling number holds", called: "Called number holds", run: "Number of the run", from: "Since", to: "Until",
  shortest: "At least, in seconds", longest: "At most, in seconds",
  fewest: "At least, in tokens", most: "At most, in tokens",
};
const HELP = {
  disposition: "As in the list, with commas between several.", tags: "All of them, with commas between.",
  fewest: "So far every run counts as 0 tokens.",
};

const list = (text) => text.split(",").map((each) => each.trim()).filter(Boolean);

/** An instant of the browser's time zone, as its controls write it. */
function moment(text) {
  const found = new Date(text);
  return Number.isNaN(found.getTime()) ? text : found.toISOString();
}

/** The values of the filters in an address, by name; empty where there is none. */
export function valuesIn(query) {
  return Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? ""]));
}

/** The API's filters for these values, as JSON; null for none. */
export function filtersOf(values) {
  const plain = FILTERS.filter(([name]) => values[name]).map(([name, attribute, read]) => ({ attribute, value: read(values[name]) }));
  const ranges = RANGES.filter(([from, to]) => values[from] || values[to]).map(([from, to, attribute, low, high, read]) => ({
    attribute,
    value: Object.fromEntries([[low, values[from]], [high, values[to]]].filter(([, value]) => value).map(([name, value]) => [name, read(value)])),
  }));
  const all = [...plain, ...ranges];
  return all.length ? JSON.stringify(all) : null;
}

/** An error about the filters, at the fields of the form instead. */
export function atFields(error, values) {
  const attributes = JSON.parse(filtersOf(values) ?? "[]").map(({ attribute }) => attribute);
  const items = (error.items ?? []).map((item) => {
    const [, , index, , part] = item.loc;
    const plain = FILTERS.find(([, attribute]) => attribute === attributes[index]);
    const range = RANGES.find(([, , attribute]) => attribute === attributes[index]);
    const name = plain?.[0] ?? (range && range[range[3] === part ? 0 : 1]);
    return name ? { ...item, loc: ["query", name] } : item;
  });
  return Object.assign(new Error(error.message), { items });
}

/**
 * The fields of the filters. `values`: those in the address; `agents`: null where only one agent's runs are asked for;
 * `codes`: the organization's disposition codes, which are written as the pages show them, or as they are.
 *
 * Returned: `element`; `read()`, which takes what the form says into `values`; `clear()`.
 */
export function runFilters(values, { agents, campaigns, codes }) {
  const named = (records) => select([ANY, ...records.map((each) => [String(each.id), each.name])]);
  const controls = {
    status: select([ANY, ["completed", "Ended"], ["in_progress", "In progress"]]),
    ...(agents ? { workflow: named(agents) } : {}),
    campaign: named(campaigns),
    direction: select([ANY, ["inbound", "To us"], ["outbound", "From us"]]),
    channel: select([ANY, ["telephony", "Telephone"], ["chat", "Text chat"], ["web", "Web"]]),
    disposition: input({ list: "dispositions" }),
    tags: input(),
    caller: input({ inputmode: "tel" }),
    called: input({ inputmode: "tel" }),
    run: input({ inputmode: "numeric" }),
    from: input({ type: "datetime-local" }),
    to: input({ type: "datetime-local" }),
    shortest: input({ type: "number", min: "0" }),
    longest: input({ type: "number", min: "0" }),
    fewest: input({ type: "number", min: "0" }),
    most: input({ type: "number", min: "0" }),
  };
  for (const [name, control] of Object.entries(controls)) control.value = values[name];
  controls.disposition.value = list(values.disposition).map(words).join(", ");
  return {
    element: [
      h("div", { class: "fields" }, Object.entries(controls).map(([name, control]) =>
        field(LABELS[name], control, { name, help: HELP[name] ?? null }))),
      h("datalist", { id: "dispositions" }, codes.map((code) => h("option", { value: words(code) }))),
    ],
    read() {
      for (const [name, control] of Object.entries(controls)) values[name] = control.value.trim();
      values.disposition = list(values.disposition).flatMap((each) => codesIn(each, codes)).join(", ");
    },
    clear() {
      for (const control of Object.values(controls)) control.value = "";
      this.read();
    },
  };
}

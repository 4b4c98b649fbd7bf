// The filters of calls and chats: their form, their names in the address, and the API's filters that they stand for.

import { codesIn, field, input, select, words } from "../../parts/components.js";
import { h, show } from "../../parts/dom.js";

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
  status: "Over or not", workflow: "Agent", campaign: "Campaign", direction: "Who called", channel: "Call or chat", disposition: "Result",
  tags: "Tags", caller: "Number of the caller contains", called: "Called number contains", run: "No.", from: "Begun since", to: "Begun until",
  shortest: "Lasted at least, in seconds", longest: "Lasted at most, in seconds",
  fewest: "Model's tokens, at least", most: "Model's tokens, at most",
};
const HELP = {
  disposition: "As in the list, with commas between several.", tags: "All of them, with commas between.",
  fewest: "So far every call and chat counts as 0 tokens.",
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
 * The fields of the filters. `values`: those in the address; `agents` and `campaigns`: promises of the records to choose
 * from, `agents` null where only one agent's calls are asked for; `codes`: a promise of the organization's results, which
 * are written as the pages show them, or as they are. The form is there before them.
 *
 * Returned: `element`; `read()`, which takes what the form says into `values`; `clear()`; `whole`, a promise that all
 * choices are there.
 */
export function runFilters(values, { agents, campaigns, codes }) {
  const coming = [];
  let known = []; // of `codes`
  /** A drop-down that has only what the address says until its records are there. */
  const named = (name, records) => {
    const control = select([ANY, ...(values[name] ? [[values[name], `No. ${values[name]}`]] : [])]);
    coming.push(records.then((found) => {
      const chosen = control.value;
      const options = [ANY, ...found.map((each) => [String(each.id), each.name])];
      if (!options.some(([value]) => value === chosen)) options.push([chosen, `No. ${chosen}`]);
      show(control, options.map(([value, text]) => h("option", { value }, text)));
      control.value = chosen;
    }));
    return control;
  };
  const controls = {
    status: select([ANY, ["completed", "Over"], ["in_progress", "Going on"]]),
    ...(agents ? { workflow: named("workflow", agents) } : {}),
    campaign: named("campaign", campaigns),
    direction: select([ANY, ["inbound", "They called"], ["outbound", "We called"]]),
    channel: select([ANY, ["telephony", "Call"], ["chat", "Chat"], ["web", "Call from a browser"]]),
    disposition: input({ list: "dispositions" }),
    tags: input(),
    caller: input({ type: "search", inputmode: "tel" }),
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
  const results = h("datalist", { id: "dispositions" });
  coming.push(codes.then((found) => {
    known = found;
    show(results, [...new Set(found.map(words))].map((text) => h("option", { value: text })));
  }));
  return {
    whole: Promise.all(coming),
    element: [
      h("div", { class: "fields" }, Object.entries(controls).map(([name, control]) =>
        field(LABELS[name], control, { name, help: HELP[name] ?? null }))),
      results,
    ],
    read() {
      const before = list(values.disposition); // known, too, while the others aren't there
      for (const [name, control] of Object.entries(controls)) values[name] = control.value.trim();
      values.disposition = list(values.disposition).flatMap((each) => codesIn(each, [...new Set([...before, ...known])])).join(", ");
    },
    clear() {
      for (const control of Object.values(controls)) control.value = "";
      this.read();
    },
  };
}

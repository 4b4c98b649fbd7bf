// The forms of tools, one for each kind. Each gives an element whose `read()` makes the definition of a request.

import { ApiError } from "../../app/api.js";
import { button, checkbox, field, fieldset, input, keyValues, numberIn, select, textarea } from "../../parts/components.js";
import { h } from "../../parts/dom.js";

const TYPES = ["string", "number", "boolean", "object", "array"].map((each) => [each, each]);
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"].map((each) => [each, each]);
const MESSAGES = [["none", "Nothing"], ["custom", "This message"]];
const AT = "definition";

/** The kinds of tools that this page has forms for: [kind, name, what it does]. */
export const KINDS = [
  ["http_api", "Ask a server", "asks a server of yours, such as the shop's, and tells the agent its answer"],
  ["transfer_call", "Put the caller through", "puts the caller through to a person or another line"],
  ["calculator", "Calculate", "works out sums, which the agent shouldn't guess"],
  ["end_call", "Hang up", "lets the agent hang up"],
];

const number = (value, props = {}) => input({ type: "number", value: value ?? "", inputmode: "numeric", ...props });
const text = (control) => control.value.trim() || null;

/** Rows of parameters. `third`: the member besides name and type, with its label. */
function parameterRows(given, [member, label, placeholder]) {
  const rows = h("div", { class: "rows" });
  const add = (each = {}) => {
    const row = h("div", { class: "row parameter" },
      input({ value: each.name ?? "", "aria-label": "Name", placeholder: "name", spellcheck: "false" }),
      select(TYPES, each.type ?? "string", { "aria-label": "Type" }),
      input({ value: each[member] ?? "", "aria-label": label, placeholder }),
      h("label", { class: "inline" }, checkbox(each.required ?? true), " required"),
      button("×", () => {
        row.remove();
        more.focus();
      }, { kind: "small plain", "aria-label": "Remove this value" }));
    rows.append(row);
    return row;
  };
  const more = button("Add a value", () => add().querySelector("input").focus(), { kind: "small" });
  for (const each of given ?? []) add(each);
  const element = h("div", {}, rows, more);
  element.read = () => {
    const found = [...rows.children].map((row) => {
      const [name, type, value, required] = row.querySelectorAll("input, select");
      return { name: name.value.trim(), type: type.value, [member]: value.value, required: required.checked };
    }).filter((each) => each.name || each[member]);
    return found.length ? found : null;
  };
  return element;
}

const asked = (given) => parameterRows(given, ["description", "What it is, for the language model", "What it is, such as: the order's number"]);
const preset = (given) => parameterRows(given, ["value_template", "Value, such as {{caller_number}}", "{{caller_number}}"]);

function credentialChoice(credentials, value) {
  return select([["", "none"], ...credentials.map((each) => [each.uuid, each.name])], value ?? "");
}

/** The part of a form that says where a request goes; `at` is its place in the definition. */
function requestFields(config, credentials, at) {
  const url = input({ type: "url", value: config.url ?? "", spellcheck: "false" });
  const headers = keyValues(config.headers ?? {}, { names: "Header", contents: "Value", add: "Add a header" });
  const credential = credentialChoice(credentials, config.credential_uuid);
  const parameters = asked(config.parameters);
  const presets = preset(config.preset_parameters);
  return {
    url: field("Address (URL)", url, { name: `${at}.url`, required: true, help: "May hold values in double braces, such as https://shop.example/orders/{{order_no}}." }),
    rest: [
      field("What the agent finds out and sends", parameters, { name: `${at}.parameters`, help: "The agent takes these from the conversation, and asks for what is missing." }),
      field("What is known already and sent, too", presets, { name: `${at}.preset_parameters`, help: "Such as the caller's number. The language model doesn't see these." }),
      field("Headers", headers, { name: `${at}.headers`, help: "Stars stand for a stored value; leave them to keep it." }),
      field("Credential", credential, { name: `${at}.credential_uuid`, help: "The key or password that the server wants. Credentials are made in the settings." }),
    ],
    read: () => ({
      url: url.value.trim(), headers: Object.keys(headers.read()).length ? headers.read() : null,
      credential_uuid: credential.value || null, parameters: parameters.read(), preset_parameters: presets.read(),
    }),
  };
}

function httpFields(config, credentials) {
  const at = `${AT}.http_api.config`;
  const method = select(METHODS, config.method ?? "GET");
  const request = requestFields(config, credentials, at);
  const timeout = number(config.timeout_ms ?? 5000, { min: "1" });
  const message = input({ value: config.customMessage ?? "" });
  const template = config.body_template ? JSON.stringify(config.body_template, null, 2) : "";
  const body = textarea(template, { rows: "5", class: "code", spellcheck: "false" });
  const element = h("div", {},
    h("div", { class: "fields" }, field("Method", method, { name: `${at}.method`, help: "GET asks, POST sends. The server's documentation says which." }), request.url),
    request.rest,
    field("What is sent, as JSON", body, { name: `${at}.body_template`, help: "May hold values in double braces. Empty: the values above are sent as they are." }),
    h("div", { class: "fields" },
      field("How long to wait for the answer, in milliseconds", timeout, { name: `${at}.timeout_ms`, help: "1000 is a second. The caller waits as well." }),
      field("What the agent says while it waits", message, { name: `${at}.customMessage`, help: "Empty: nothing." })));
  element.read = () => ({
    ...config, ...request.read(), method: method.value, timeout_ms: numberIn(timeout), body_template: json(body, `${at}.body_template`),
    customMessage: text(message), customMessageType: text(message) ? "text" : null,
  });
  return element;
}

function json(control, place) {
  if (!control.value.trim()) return null;
  try {
    return JSON.parse(control.value);
  } catch (error) {
    throw new ApiError(422, [{ loc: ["body", ...place.split(".")], msg: `This isn't JSON: ${error.message}` }]);
  }
}

function ruleRows(mapping) {
  const given = mapping?.rules ?? (mapping?.context_path ? [{ context_path: mapping.context_path, routes: mapping.routes }] : []);
  const rows = h("div", { class: "rows" });
  const add = (rule = { context_path: "", routes: [] }) => {
    const path = input({ value: rule.context_path, spellcheck: "false", placeholder: "initial_context.city" });
    const pairs = Object.fromEntries(rule.routes.map((each) => [each.context_value, each.destination]));
    const routes = keyValues(pairs, { names: "Value", contents: "Number", add: "Add a number" });
    const row = h("div", { class: "rule" }, field("Value that decides", path), field("Number for each value", routes),
      button("Remove this rule", () => {
        row.remove();
        more.focus();
      }, { kind: "small" }));
    row.read = () => ({
      context_path: path.value.trim(),
      routes: Object.entries(routes.read()).map(([context_value, destination]) => ({ context_value, destination })),
    });
    rows.append(row);
  };
  const more = button("Add a rule", () => add(), { kind: "small" });
  for (const rule of given) add(rule);
  const element = h("div", {}, rows, more);
  element.read = () => [...rows.children].map((row) => row.read());
  return element;
}

function transferFields(config, credentials) {
  const at = `${AT}.transfer_call.config`;
  const source = select([["static", "Always the same number"], ["context_mapping", "A number by what is known of the call"], ["dynamic", "A server of yours says which"]],
    config.destination_source ?? "static");
  const destination = input({ value: config.destination ?? "", placeholder: "+12025550188" });
  const rules = ruleRows(config.context_mapping);
  const fallback = input({ value: config.context_mapping?.fallback_destination ?? "", placeholder: "+12025550188" });
  const resolver = requestFields(config.resolver ?? {}, credentials, `${at}.resolver`);
  const patience = number(config.resolver?.timeout_ms ?? 3000, { min: "500", max: "5000" });
  const waiting = input({ value: config.resolver?.wait_message ?? "" });
  const message = input({ value: config.messageType === "custom" ? config.customMessage ?? "" : "" });
  const timeout = number(config.timeout ?? 30, { min: "5", max: "120" });
  const parts = {
    static: field("Number", destination, { name: `${at}.destination`, help: "With + and country code, or a value in double braces, such as {{branch_number}}." }),
    context_mapping: fieldset("Numbers",
      field("Rules; the first that fits counts", rules, { name: `${at}.context_mapping` }),
      field("Number if no rule fits", fallback, { name: `${at}.context_mapping.fallback_destination` })),
    dynamic: fieldset("The server to ask", resolver.url, resolver.rest,
      h("div", { class: "fields" },
        field("How long to wait for its answer, in milliseconds", patience, { name: `${at}.resolver.timeout_ms` }),
        field("What the agent says while it waits", waiting, { name: `${at}.resolver.wait_message` }))),
  };
  const chosen = () => Object.entries(parts).forEach(([name, part]) => (part.hidden = name !== source.value));
  source.addEventListener("change", chosen);
  chosen();
  const element = h("div", {},
    field("Where to put the caller through", source, { name: `${at}.destination_source` }), Object.values(parts),
    h("div", { class: "fields" },
      field("What the agent says before", message, { name: `${at}.customMessage`, help: "Empty: nothing." }),
      field("How long it may ring, in seconds", timeout, { name: `${at}.timeout` })));
  element.read = () => ({
    ...config,
    destination_source: source.value,
    destination: destination.value.trim(),
    messageType: text(message) ? "custom" : config.messageType === "audio" ? "audio" : "none",
    customMessage: text(message),
    timeout: numberIn(timeout),
    context_mapping: source.value === "context_mapping"
      ? { rules: rules.read(), fallback_destination: text(fallback) } : config.context_mapping ?? null,
    resolver: source.value === "dynamic"
      ? { ...resolver.read(), timeout_ms: numberIn(patience), wait_message: text(waiting) } : config.resolver ?? null,
  });
  return element;
}

function endFields(config) {
  const at = `${AT}.end_call.config`;
  const kind = select(config.messageType === "audio" ? [...MESSAGES, ["audio", "a recording"]] : MESSAGES, config.messageType ?? "none");
  const message = input({ value: config.customMessage ?? "" });
  const asks = checkbox(config.endCallReason);
  const reason = input({ value: config.endCallReasonDescription ?? "" });
  const element = h("div", {},
    h("div", { class: "fields" },
      field("What the agent says before it hangs up", kind, { name: `${at}.messageType` }),
      field("Message", message, { name: `${at}.customMessage` })),
    field("The language model says why it hangs up", asks, { name: `${at}.endCallReason`, help: "Its reason becomes the result of the call." }),
    field("Which reasons there are", reason, { name: `${at}.endCallReasonDescription`, help: "For the language model, such as: sold, not_interested or wrong_number." }));
  element.read = () => ({
    ...config, messageType: kind.value, customMessage: text(message), endCallReason: asks.checked, endCallReasonDescription: text(reason),
  });
  return element;
}

/** The fields of a kind of tool. `credentials`: those of the organization. `read()` gives the whole definition. */
export function toolFields(kind, definition, credentials) {
  const config = definition?.config ?? {};
  const makers = { http_api: httpFields, transfer_call: transferFields, end_call: endFields };
  const fields = makers[kind]?.(config, credentials) ?? otherFields(kind, definition);
  const element = h("div", {}, fields);
  element.read = () => (fields.read ? { schema_version: 1, type: kind, config: fields.read() } : { schema_version: 1, type: kind });
  if (fields.readAll) element.read = fields.readAll;
  return element;
}

/** A calculator has nothing to set; of a kind without a form, its definition is shown as JSON. */
function otherFields(kind, definition) {
  if (kind === "calculator") return h("p", { class: "quiet" }, "There is nothing else to set: the agent gives it a sum, and gets the result.");
  const whole = textarea(JSON.stringify(definition, null, 2), { rows: "12", class: "code", spellcheck: "false" });
  const element = h("div", {}, field("Definition", whole, { name: AT }));
  element.readAll = () => json(whole, AT);
  return element;
}

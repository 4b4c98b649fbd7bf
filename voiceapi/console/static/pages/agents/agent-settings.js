// How an agent's calls behave: its name, its configurations and its template variables.

import { publishRequirements } from "../../builder/publish-requirements.js";
import { debounced, details, field, input, keyValues, textarea } from "../../parts/components.js";
import { h, uniqueId } from "../../parts/dom.js";

// [member, label, help, minimum, maximum]; a minimum makes it a number.
const FIELDS = [
  ["language", "Language", "What the agent speaks and hears, as a tag such as de-DE; en-US when empty."],
  ["voice", "Voice", "natural, which costs more at most carriers; standard; or the carrier's own name of a voice. The carrier's usual one when empty."],
  ["max_call_duration", "Longest call", "Seconds until the service ends a call; 300 when empty, at most 1200.", 1, 1200],
  ["max_user_idle_timeout", "Longest silence", "Seconds until the agent asks whether somebody is there; 10 when empty.", 1, null],
  ["filler_after", "Longest wait for a reply", "Seconds until the agent asks the caller for a moment; 2.5 when empty.", 1, 3.5],
  ["first_sentence", "First sentence", "auto: it is spoken while the language model still writes the rest. off: the caller can always interrupt."],
  ["end_of_speech", "Pause after which the caller has finished", "quick, normal, patient, or seconds from 0.4 to 10."],
  ["text_chat_inactivity_timeout_seconds", "Longest pause of a chat", "Seconds without a message until it ends, from 60 to 10500.", 60, 10500],
];
const FRACTIONS = new Set(["max_user_idle_timeout", "filler_after"]);
const mayBeNumber = (member, text) => member === "end_of_speech" && /^[\d.]+$/.test(text) && Number.isFinite(Number(text));
const SHOWN = new Set([...FIELDS.map(([name]) => name), "publish_requirements"]);

/** `state`: {name, configurations, variables}, which is changed in place; `changed` is called after each change. */
export function settingsForm(state, changed) {
  const name = input({ value: state.name, maxlength: "500" });
  name.addEventListener("input", () => {
    state.name = name.value;
    changed();
  });
  const voices = h("datalist", { id: uniqueId("voices") }, ["natural", "standard"].map((value) => h("option", { value })));
  const fields = FIELDS.map(([member, label, help, low, high]) => {
    const isNumber = low !== undefined;
    const control = input({
      ...(member === "voice" ? { list: voices.id } : {}),
      ...(isNumber ? { type: "number", min: low, max: high, step: FRACTIONS.has(member) ? "any" : "1" } : {}),
      value: state.configurations[member] ?? "",
    });
    control.addEventListener("input", () => {
      if (control.validity.badInput) return;
      if (control.value === "") delete state.configurations[member];
      else state.configurations[member] = isNumber || mayBeNumber(member, control.value) ? Number(control.value) : control.value;
      changed();
    });
    return field(label, control, { help, name: `workflow_configurations.${member}` });
  });
  const variables = keyValues(state.variables, { add: "Add a value" });
  variables.addEventListener("input", () => readVariables());
  variables.addEventListener("click", () => readVariables());
  const readVariables = () => {
    const given = variables.read();
    // What was no text, and still reads the same, stays what it was.
    const kept = (each, value) => (typeof state.variables[each] !== "string" && JSON.stringify(state.variables[each]) === value ? state.variables[each] : value);
    const read = Object.fromEntries(Object.entries(given).map(([each, value]) => [each, kept(each, value)]));
    if (JSON.stringify(read) === JSON.stringify(state.variables)) return;
    state.variables = read;
    changed();
  };
  return h("div", { class: "stack" },
    field("Name", name, { name: "name", required: true }),
    h("div", { class: "fields" }, fields), voices,
    field("Known before the call", variables, {
      name: "template_context_variables",
      help: "What {{name}} stands for in prompts, greetings and addresses, unless a call or a contact brings a value of its own.",
    }),
    publishRequirements(state, changed),
    details("Other settings as JSON", others(state, changed)));
}

function others(state, changed) {
  const rest = Object.fromEntries(Object.entries(state.configurations).filter(([name]) => !SHOWN.has(name)));
  const control = textarea(JSON.stringify(rest, null, 2), { rows: "10", class: "code", spellcheck: "false" });
  const complaint = h("p", { class: "field-error", role: "status" });
  control.addEventListener("input", debounced(() => {
    try {
      const value = JSON.parse(control.value || "{}");
      if (!value || typeof value !== "object" || Array.isArray(value)) throw new Error("it must be an object");
      const shown = Object.entries(state.configurations).filter(([name]) => SHOWN.has(name));
      state.configurations = { ...value, ...Object.fromEntries(shown) };
      complaint.textContent = "";
      changed();
    } catch (error) {
      complaint.textContent = `This isn't taken over yet: ${error.message}.`;
    }
  }));
  return h("div", { class: "stack" },
    field("Other settings", control, {
      name: "workflow_configurations",
      help: "Sentences that the service speaks by itself, words that the speech recogniser is to expect, a language model for this agent alone, and more.",
    }), complaint);
}

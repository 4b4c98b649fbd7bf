// The catalogue's labels in plain words. The API's are fixed, for programs and for people who know them from there.

import { api } from "../app/api.js";

const TYPES = {
  startCall: "Start", agentNode: "Step", endCall: "End", globalNode: "For all steps", trigger: "Call by request", webhook: "Report (webhook)", qa: "Review",
};

// By the member's name, the same in all types.
const MEMBERS = {
  scripted_text: "What it says without a model",
  greeting_type: "Kind of greeting",
  allow_interrupt: "The caller may interrupt",
  add_global_prompt: "Add the instructions for all steps",
  delayed_start: "Wait before the first words",
  delayed_start_duration: "Seconds to wait",
  extraction_enabled: "Collect answers",
  extraction_prompt: "How to collect them",
  extraction_variables: "Answers to collect",
  tool_uuids: "Tools it may use",
  document_uuids: "Documents it may search",
  pre_call_fetch_mode: "Look up the caller before the call",
  pre_call_fetch_enabled: "Look up the caller (older setting)",
  pre_call_fetch_url: "Address to look up at",
  pre_call_fetch_credential_uuid: "Credential",
  call: "Tool to call on arrival",
  trigger_path: "Last part of its address",
  http_method: "Method",
  endpoint_url: "Address to send it to",
  credential_uuid: "Credential",
  custom_headers: "Further headers",
  payload_template: "What is sent",
  qa_use_workflow_llm: "Use the agent's language model",
  qa_provider: "Provider of another model",
  qa_model: "Its name",
  qa_sample_rate: "Share of calls (%)",
  qa_min_call_duration: "Shortest call (seconds)",
  qa_voicemail_calls: "Voicemail, too",
  qa_system_prompt: "What to look at",
  cost_llm_input_rate: "Language model, input",
  cost_llm_cached_input_rate: "Language model, cached input",
  cost_llm_output_rate: "Language model, output",
  cost_tts_rate: "Speaking",
  cost_stt_rate: "Listening",
  condition: "Taken when",
  transition_speech: "Said on the way",
  lint_ignore: "Ignored findings",
  workflow_configurations: "Settings",
  template_context_variables: "Known before the call",
};

// One record of what is a list.
const ONE = { extraction_variables: "Answer", custom_headers: "Header" };

/** "Step" or "Path": what a node or an edge is called. */
export const KINDS = { node: "Step", edge: "Path", note: "Note" };

/** What a member at a path is called, such as ["data", "scripted_text"] or "data.scripted_text". */
export function memberName(path) {
  const [first, ...rest] = (Array.isArray(path) ? path : path.split(".")).filter((name) => name !== "data");
  const name = MEMBERS[first] ?? `${first[0].toUpperCase()}${first.slice(1).replaceAll("_", " ")}`;
  return [name, ...rest].join(", ");
}

const plain = (property) => ({ ...property, display_name: MEMBERS[property.name] ?? property.display_name, one: ONE[property.name] ?? "Entry" });

/** The types of nodes as the API lists them, with our labels. */
export async function nodeTypes(signal) {
  const { node_types: types } = await api.get("/node-types", { signal });
  return types.map((type) => ({ ...type, display_name: TYPES[type.name] ?? type.display_name, properties: type.properties.map(plain) }));
}

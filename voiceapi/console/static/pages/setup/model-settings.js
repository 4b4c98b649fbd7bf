// Model configurations: what an answer of the API says, and the body that sets one.

export const SCRIPTED = "scripted";
// The server of the operator, which VOICEAPI_LLM_URL names.
export const OPERATOR = "openai-compatible";
// Providers whose address the service knows. What they are called is also their name in the API.
export const KNOWN = ["openai", "openrouter", "groq", "google", "deepseek", "mistral", "together", "cerebras", "xai"];

// Hosts that are in a private network by their names.
const PRIVATE =
  /^([^.[]+|.+\.(localhost|local|lan|home|internal|home\.arpa)|(0|10|127|192\.168|169\.254)\..+|172\.(1[6-9]|2\d|3[01])\..+|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\..+|\[(::|f[cd]|fe[89ab]).*)$/;

/** The host and port of a URL as VOICEAPI_ALLOW_PRIVATE_URLS names them, if it leads into a private network; or "". */
export function privateHost(url) {
  const found = URL.canParse(url) ? new URL(url) : null;
  return found && PRIVATE.test(found.hostname) ? found.host : "";
}

/** The `llm` part of an answer, or null. */
export function languageModel(answer) {
  return answer.effective_configuration.llm ?? null;
}

/** What speaks: {name, note, isScripted}. */
export function modelInUse(answer) {
  const llm = languageModel(answer);
  const isOwn = answer.source !== "empty";
  if (!answer.configuration) return { name: "that of your app", note: "It is set in the app.", isScripted: false };
  if (!llm && isOwn && answer.configuration?.mode === "dograh") {
    return { name: "the service's own", note: "Models that Dograh hosts can't be reached from here.", isScripted: false };
  }
  if (!llm || llm.provider === SCRIPTED) {
    return { name: "none", note: "Agents say what is written, word for word.", isScripted: true };
  }
  const name = llm.model || llm.provider;
  const place = [llm.model && llm.provider, llm.base_url].filter(Boolean).join(" at ");
  return { name, note: [place, !isOwn && "set by whoever runs the service"].filter(Boolean).join(", "), isScripted: false };
}

/** True if the scripted model speaks in a workflow, whose own model counts before the answer's. */
export function isScriptedIn(workflow, answer) {
  const own = workflow.workflow_configurations?.model_configuration_v2_override?.byok;
  const llm = own?.[own.mode]?.llm;
  return llm ? llm.provider === SCRIPTED : modelInUse(answer).isScripted;
}

/** True if the answer's model may be used with the stored key: the same provider at the same address. */
export function isSameServer(llm, provider, url) {
  return llm !== null && llm.provider === provider && (llm.base_url ?? "") === url;
}

/**
 * The body that makes `llm` the language model. What else is configured stays: other services, and members that only
 * other clients know.
 */
export function bodyWith(answer, llm) {
  const byok = answer.configuration?.mode === "byok" ? answer.configuration.byok : {};
  const before = byok[byok.mode] ?? {};
  // What hears and speaks on the phone is the carrier's.
  const carrier = { provider: "carrier", model: "default" };
  const pipeline = { ...before, llm, tts: before.tts ?? carrier, stt: before.stt ?? carrier };
  delete pipeline.realtime;
  return { version: 2, mode: "byok", byok: { mode: "pipeline", pipeline } };
}

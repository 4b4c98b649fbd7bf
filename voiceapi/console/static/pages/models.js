// Which language model speaks in the organization's agents.

import { api } from "../app/api.js";
import { Edited } from "../app/edited.js";
import { badge, button, callout, facts, field, formWith, input, notify, section, select, showWhenReady } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { oneAfterAnother } from "../parts/unsaved.js";
import { KNOWN, OPERATOR, SCRIPTED, bodyWith, isSameServer, languageModel, modelInUse, privateHost } from "./setup/model-settings.js";

const PATH = "/organizations/model-configurations/v2";
// A choice of the page that isn't a provider of the API: a server whose address is given.
const ELSEWHERE = "elsewhere";
const CHOICES = [
  [SCRIPTED, "No model: scripted"],
  [OPERATOR, "The server of whoever runs this service"],
  ...KNOWN.map((name) => [name, name]),
  [ELSEWHERE, "Another server, compatible with OpenAI's"],
];
const HELP = {
  [SCRIPTED]: "Agents say their greetings and scripted texts, or else their prompts, as they are written; what the caller says picks the edge. It works offline, and costs nothing.",
  [OPERATOR]: "VOICEAPI_LLM_URL, with the operator's key, which is shown to nobody. Name a model, or leave that to the operator.",
  [ELSEWHERE]: "Such as Ollama, llama.cpp or vLLM.",
};

const BASE_URL = "The base URL, which usually ends in /v1.";

export default async function models({ root, signal, title }) {
  const record = await Edited.read(PATH, signal);
  title("Language model", [["Settings", "/settings"]]);
  const now = h("div");
  const body = h("div");
  const change = async (llm) => {
    record.value = await record.send("PUT", bodyWith(record.value, llm));
    notify("It is saved, and used from the next call on.");
    view();
  };
  const asks = record.asks("The model was", async () => {
    await record.reload();
    view();
  });
  const next = oneAfterAnother(signal);
  const view = () => {
    show(now, inUse(record.value, signal));
    show(body, modelForm(record.value, change, { saves: next(), asks }));
  };
  view();
  show(root, section("In use", now), section("Change", body));
}

function inUse(answer, signal) {
  const used = modelInUse(answer);
  const found = h("div", { role: "status" });
  const check = button("Try whether it answers", () =>
    showWhenReady(found, api.get("/organizations/doctor", { signal }), ({ findings }) => modelFindings(findings)));
  return [
    facts([
      ["Model", used.name],
      ["", used.note],
      ["Set by", answer.source === "empty" ? "the operator" : "this organization"],
    ]),
    h("div", { class: "actions" }, used.isScripted ? null : check), found,
  ];
}

function modelFindings(findings) {
  return findings.filter(({ subject }) => subject.startsWith("language model")).map(({ wrong, note }) =>
    h("p", {}, wrong ? badge("wrong", "bad") : badge("good", "good"), " ", wrong ?? note ?? "It answers."));
}

/** Which choice of the page a model is. */
function choiceOf(llm, isOwn) {
  if (!llm) return SCRIPTED;
  // The address of a model that isn't the organization's own is the operator's.
  if (llm.base_url && isOwn) return ELSEWHERE;
  return CHOICES.some(([value]) => value === llm.provider) ? llm.provider : ELSEWHERE;
}

function modelForm(answer, change, options) {
  const llm = languageModel(answer);
  const stored = [llm?.api_key ?? []].flat();
  const provider = select(CHOICES, choiceOf(llm, answer.source !== "empty"));
  const providerField = field("Who answers", provider, { name: "byok.pipeline.llm.provider", help: " " });
  const name = input({ value: llm?.provider === SCRIPTED ? "" : (llm?.model ?? ""), spellcheck: "false" });
  const url = input({ type: "url", value: llm?.base_url ?? "", placeholder: "http://127.0.0.1:11434/v1", spellcheck: "false" });
  const key = input({ type: "password", autocomplete: "new-password" });
  const tokens = input({ type: "number", min: "1", value: llm?.max_tokens ?? "" });
  const keyNote = h("p", { class: "help" });

  const place = (member) => ({ name: `byok.pipeline.llm.${member}` });
  const urlField = field("Address", url, { ...place("base_url"), required: true, help: BASE_URL });
  const nameField = field("Model", name, { ...place("model"), help: "As the server calls it." });
  const keyField = field("API key", key, place("api_key"));
  keyField.append(keyNote);
  const tokensField = field("Most tokens of a reply", tokens, { ...place("max_tokens"), help: "Empty: what the operator set." });

  const given = () => {
    const isElsewhere = provider.value === ELSEWHERE;
    // A server that is named by its address keeps the provider's name that it has.
    const isNamed = isElsewhere && llm?.base_url && llm.provider !== SCRIPTED;
    return {
      provider: isNamed ? llm.provider : isElsewhere ? "custom" : provider.value,
      url: isElsewhere ? url.value.trim() : "",
    };
  };
  const isKept = () => stored.length > 0 && isSameServer(llm, given().provider, given().url);
  const adapt = () => {
    const isScripted = provider.value === SCRIPTED;
    providerField.querySelector(".help").textContent = HELP[provider.value] ?? "";
    urlField.hidden = provider.value !== ELSEWHERE;
    const host = privateHost(url.value.trim() || url.placeholder);
    urlField.querySelector(".help").textContent = host
      ? `${BASE_URL} One in a private network is asked only if whoever runs this service sets VOICEAPI_ALLOW_PRIVATE_URLS=${host}, or true.`
      : BASE_URL;
    nameField.hidden = tokensField.hidden = isScripted;
    keyField.hidden = isScripted || provider.value === OPERATOR;
    keyNote.textContent = isKept()
      ? `Stored: ${stored.join(", ")}. Leave this empty to keep it.`
      : stored.length ? "The stored key belongs to another server, so it isn't sent to this one." : "Stored encrypted, and shown nowhere.";
  };
  provider.addEventListener("change", adapt);
  url.addEventListener("input", adapt);
  adapt();

  const save = () => {
    const { provider: wanted, url: address } = given();
    if (wanted === SCRIPTED) return change({ provider: SCRIPTED, model: SCRIPTED });
    const isSame = isSameServer(llm, wanted, address);
    const { api_key: _key, base_url: _url, ...rest } = isSame ? llm : {};
    return change({
      ...rest,
      provider: wanted,
      model: name.value.trim() || null,
      ...(address && { base_url: address }),
      ...(key.value ? { api_key: key.value } : isKept() && { api_key: llm.api_key }),
      max_tokens: tokens.value === "" ? null : Number(tokens.value),
    });
  };
  return formWith({ submit: "Save", act: save, ...options },
    answer.configuration?.byok?.mode === "realtime" && callout("A model that hears and speaks by itself is configured. It isn't used here; saving replaces it."),
    providerField, urlField, nameField, keyField, tokensField);
}

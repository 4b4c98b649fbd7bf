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
  [SCRIPTED, "No language model: agents say what is written"],
  [OPERATOR, "The one that whoever runs this service has set up"],
  ...KNOWN.map((name) => [name, name]),
  [ELSEWHERE, "Another server that works like OpenAI's"],
];
const HELP = {
  [SCRIPTED]: "Agents say the sentences of their steps as they are written, and go on by the words that they know in what the caller says. It works without the internet, and costs nothing.",
  [OPERATOR]: "Its address and key are settings of the service, which begin with VOICEAPI_LLM. Name a model, or leave that to whoever runs the service.",
  [ELSEWHERE]: "Such as Ollama, llama.cpp or vLLM on a machine of yours.",
};

const BASE_URL = "It usually ends in /v1.";

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
  show(root, section("What agents speak with now", now), section("Change it", body));
}

function inUse(answer, signal) {
  const used = modelInUse(answer);
  const found = h("div", { role: "status" });
  const check = button("Check that it answers", () =>
    showWhenReady(found, api.get("/organizations/doctor", { signal }), ({ findings }) => modelFindings(findings)));
  return [
    facts([
      ["Model", used.name],
      ["", used.note],
      ["Set by", answer.source === "empty" ? "whoever runs the service" : "this page"],
    ]),
    h("div", { class: "actions" }, used.isScripted ? null : check), found,
  ];
}

function modelFindings(findings) {
  return findings.filter(({ subject }) => subject.startsWith("language model")).map(({ wrong, note }) =>
    h("p", {}, wrong ? badge("problem", "bad") : badge("works", "good"), " ", wrong ?? note ?? "It answers."));
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
  const providerField = field("Whose language model", provider, { name: "byok.pipeline.llm.provider", help: " " });
  const name = input({ value: llm?.provider === SCRIPTED ? "" : (llm?.model ?? ""), spellcheck: "false" });
  const url = input({ type: "url", value: llm?.base_url ?? "", placeholder: "http://127.0.0.1:11434/v1", spellcheck: "false" });
  const key = input({ type: "password", autocomplete: "new-password" });
  const tokens = input({ type: "number", min: "1", value: llm?.max_tokens ?? "" });
  const keyNote = h("p", { class: "help" });

  const place = (member) => ({ name: `byok.pipeline.llm.${member}` });
  const urlField = field("Address", url, { ...place("base_url"), required: true, help: BASE_URL });
  const nameField = field("Name of the model", name, { ...place("model"), help: "As its server calls it." });
  const keyField = field("API key", key, place("api_key"));
  keyField.append(keyNote);
  const tokensField = field("Longest reply, in tokens", tokens, { ...place("max_tokens"), help: "Four tokens are about three words. Empty: what the service is set to." });

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
      ? `${BASE_URL} An address in a private network is used only if the service has the setting VOICEAPI_ALLOW_PRIVATE_URLS=${host}, or true.`
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
    answer.configuration?.byok?.mode === "realtime" && callout("A model that hears and speaks by itself is set up. It isn't used here; saving replaces it."),
    providerField, urlField, nameField, keyField, tokensField);
}

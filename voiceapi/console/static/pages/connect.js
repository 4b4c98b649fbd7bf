// Connect a number: an account at a carrier, a number of it and an agent, and what both need, here and at the carrier.

import { api } from "../app/api.js";
import { go } from "../app/router.js";
import { button, callout, coded, copyable, field, form, formWith, input, link, notify, section, select, textarea } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { listOf, undoing } from "./setup/connected.js";
import { findings } from "./setup/doctor.js";

const PATH = "/organizations/connected-numbers";

export default async function connect({ root, query, signal, title }) {
  const [known, { providers }, agents] = await Promise.all([
    api.get(PATH, { signal }),
    api.get("/organizations/telephony-providers/metadata", { signal }),
    api.get("/workflow/summary", { query: { status: "active" }, signal }),
  ]);
  title("Connect a number", [["Carriers", "/carriers"]]);
  if (known.problem) show(root, outOfReach(known.problem));
  else if (!agents.length) show(root, callout("There is no agent yet that could answer calls.", " ", link("Make one first", "/agents")));
  else steps({ root, known, providers, agents, chosen: query.get("carrier") ?? "twilio", signal });
}

/** What to do before any carrier can reach the service, copyable for whoever runs it. */
function outOfReach(problem) {
  return [
    section("First, carriers have to reach this service", h("div", { class: "stack" },
      h("p", {}, "When somebody calls, the carrier asks this service what to say. For that it needs an address on the internet that begins with https. So far there is none, so nothing can be connected:"),
      callout(coded(problem.replace(/, and nothing was changed\. .*/, "."))),
      h("p", {}, "If somebody else runs the service, send them this page. There are two ways:"),
      h("h3", {}, "For trying out, on your own machine"),
      h("p", {}, "Stop the service, and start it with a tunnel, which gets an address for as long as it runs. It needs cloudflared, which the command tells how to install."),
      copyable("voiceapi serve --tunnel", "Copy the command"),
      h("h3", {}, "For good"),
      h("p", {}, "Give the service this setting, with its own address, and start it again."),
      copyable("VOICEAPI_PUBLIC_URL=https://voice.example.com", "Copy the setting"),
      h("div", { class: "actions" }, button("Look again", () => go("/carriers/connect"), { kind: "primary" })))),
    section("What works until then",
      h("p", {}, "Agents can be talked to in the browser, by text, by voice and in simulated calls."),
      h("div", { class: "actions" }, link("Go to the agents", "/agents", { class: "button" }))),
  ];
}

/** The steps, each of which shows the next one below it and takes those after it away. */
function steps({ root, known, providers, agents, chosen, signal }) {
  const [account, number, changes, done] = ["", "", "", "stack"].map((kind) => h("div", { class: kind || null }));
  const after = (place, ...children) => {
    const places = [number, changes, done];
    for (const each of places.slice(places.indexOf(place))) show(each);
    show(place, ...children);
    place.querySelector("input, select, button")?.focus();
  };
  const fromAccount = (given) => after(number, numberForm(given, agents, signal, fromNumber));
  const fromNumber = (wanted, planned) => after(changes, changesForm(wanted, planned, signal, (made) => fromChanges(wanted, made)));
  const fromChanges = (wanted, made) => after(done, result(wanted, made, signal));
  show(account, accountForm({ known, providers, chosen, signal, next: fromAccount, changed: () => after(number) }));
  show(root, account, number, changes, done);
}

function accountForm({ known, providers, chosen, signal, next, changed }) {
  const choice = select(known.carriers.map(({ provider }) => [provider, name(providers, provider)]), chosen);
  const place = h("div");
  let controls = [];
  const carrier = () => {
    const asked = new Set(known.carriers.find(({ provider }) => provider === choice.value).credentials);
    const { fields, docs_url: docs } = providers.find(({ provider }) => provider === choice.value);
    controls = fields.filter((each) => asked.has(each.name)).map((each) => [each, each.type === "textarea" ? textarea() : input({
      spellcheck: "false", placeholder: each.placeholder ?? "", type: each.sensitive ? "password" : "text", autocomplete: "new-password",
    })]);
    show(place, docs && h("p", {}, h("a", { href: docs, target: "_blank", rel: "noopener" }, `Where to find these: the documentation of ${name(providers, choice.value)}`)),
      controls.map(([each, control]) => field(each.label, control, { name: `credentials.${each.name}`, help: each.description })));
    changed();
  };
  choice.addEventListener("change", carrier);
  carrier();
  const ask = async () => {
    const filled = controls.filter(([, control]) => control.value.trim());
    const credentials = Object.fromEntries(filled.map(([each, control]) => [each.name, control.value.trim()]));
    const given = { provider: choice.value, credentials };
    const found = await api.post(`${PATH}/available`, { body: given, signal });
    next({ ...given, telephony_configuration_id: found.telephony_configuration_id, numbers: found.numbers, carrier: name(providers, choice.value) });
  };
  return section("1. Your account at the carrier", form("Check it", ask, field("Carrier", choice, { name: "provider", required: true }), place));
}

function numberForm({ numbers, carrier, ...account }, agents, signal, next) {
  const usable = (numbers ?? []).filter((each) => !each.obstacle);
  if (numbers && !usable.length) return callout(`This ${carrier} account has no number that takes calls. Get one at ${carrier}, then check the account again.`);
  const number = numbers
    ? select(usable.map((each) => [each.number, each.label && each.label !== each.number ? `${each.number}, ${each.label}` : each.number]), usable[0].number)
    : input({ placeholder: "+12025550123", maxlength: "255" });
  const agent = select(agents.map((each) => [String(each.id), each.name]), String(agents[0].id));
  const ask = async () => {
    const wanted = { ...account, number: number.value.trim(), workflow_id: Number(agent.value) };
    next({ ...wanted, carrier }, await api.post(PATH, { body: { ...wanted, dry_run: true }, signal }));
  };
  const others = (numbers ?? []).filter((each) => each.obstacle);
  return section("2. The number and its agent",
    form("Show what changes", ask,
      field("Number", number, { name: "number", required: true, help: numbers ? null : "With + and country code, as the account has it." }),
      field("Agent that answers its calls", agent, { name: "workflow_id", required: true })),
    others.length > 0 && [h("p", { class: "quiet" }, "These numbers of the account can't be connected:"), listOf(others.map((each) => `${each.number}: ${each.obstacle}.`))]);
}

function changesForm({ carrier, ...wanted }, planned, signal, next) {
  const carryOut = async () => next(await api.post(PATH, { body: wanted, signal }));
  return section("3. What will change",
    planned.changes.length ? listOf(planned.changes) : h("p", {}, `${wanted.number} is connected already.`),
    form(planned.changes.length ? "Change it" : "Check it again", carryOut));
}

function result(wanted, made, signal) {
  const id = made.telephony_configuration_id;
  const telephone = input({ placeholder: "+12025550123", inputmode: "tel", autocomplete: "tel" });
  const answer = h("div", { "aria-live": "polite" });
  const call = async () => {
    const placed = await api.post("/telephony/initiate-call", { body: {
      workflow_id: wanted.workflow_id,
      phone_number: telephone.value.trim(),
      telephony_configuration_id: id,
      from_phone_number_id: made.phone_number_id,
    }, signal });
    show(answer, h("p", {}, "It rings. ", link("Watch the call", `/agents/${wanted.workflow_id}/runs/${placed.workflow_run_id}`)));
  };
  const undo = undoing(id, wanted.number, signal, () => notify(`${wanted.number} isn't connected any more.`));
  return [
    section("Connected",
      h("p", {}, `Calls to ${wanted.number} are answered by your agent. `, link("The carrier's page", `/carriers/${id}`)),
      made.notes.length > 0 && [h("p", {}, `Left to do at ${wanted.carrier}:`), listOf(made.notes)],
      h("div", { class: "actions" }, undo)),
    section("Have it call you",
      formWith({ submit: "Call", act: call }, field("Your own telephone", telephone, { name: "phone_number", required: true, help: "With + and country code." })),
      answer),
    findings(signal),
  ];
}

function name(providers, provider) {
  return providers.find((each) => each.provider === provider)?.display_name ?? provider;
}

// One account at a carrier: its credentials, its numbers, and whether it works.

import { api } from "../app/api.js";
import { Edited } from "../app/edited.js";
import { go } from "../app/router.js";
import {
  badge, button, callout, checkbox, confirm, copyable, details, dialogForm, facts, field, formWith, input, instant, link, notify,
  section, select, table,
} from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { credentialFields } from "./setup/carrier-forms.js";
import { connectedNumbers, undoing } from "./setup/connected.js";
import { findings } from "./setup/doctor.js";

export default async function carrierPage({ root, params, signal, title }) {
  const path = `/organizations/telephony-configs/${encodeURIComponent(params[0])}`;
  const [record, { phone_numbers: numbers }, { rejected_calls: rejected }, { providers }, agents, connected] = await Promise.all([
    Edited.read(path, signal),
    api.get(`${path}/phone-numbers`, { signal }),
    api.get(`${path}/rejected-calls`, { signal }),
    api.get("/organizations/telephony-providers/metadata", { signal }),
    api.get("/workflow/summary", { query: { status: "active" }, signal }),
    connectedNumbers(Number(params[0]), signal),
  ]);
  const configuration = record.value;
  const carrier = providers.find((each) => each.provider === configuration.provider);
  const again = () => go(`/carriers/${configuration.id}`);
  const done = (text) => {
    notify(text);
    again();
  };
  title(configuration.name, [["Carriers", "/carriers"]]);
  show(root,
    summary(configuration, carrier, path, signal, done),
    numbersOf(numbers, agents, path, signal, done),
    connectedSection(configuration, connected, signal),
    rejected.length > 0 && rejectedCalls(rejected),
    configuration.provider === "simulator" ? null : urls(configuration, carrier),
    findings(signal, configuration.id),
    credentials(record, carrier, signal, again, done));
}

function summary(configuration, carrier, path, signal, done) {
  const post = async (what, text) => {
    await api.post(`${path}/${what}`, { signal });
    done(text);
  };
  const remove = async () => {
    const question = `Delete “${configuration.name}” and its numbers here? Calls through it are no longer possible; at the carrier nothing is deleted.`;
    if (!(await confirm(question, "Delete"))) return;
    await api.delete(path, { signal });
    notify("The account is deleted here.");
    go("/carriers");
  };
  const steps = configuration.setup_checklist;
  return section(carrier.display_name,
    configuration.inactive && callout(`It is set aside: ${configuration.inactive_reason ?? "no reason is given"}.`),
    steps && !steps.ready_for_outbound && callout(steps.outbound_blocked_reason),
    facts([
      ["Calls out", configuration.is_default_outbound
        ? badge("go through it, unless another account is chosen", "good") : "only those for which it is chosen, or if the usual account can't"],
      ["Connected by", configuration.connectivity === "sip" ? "SIP, the internet's telephone lines" : null],
      ["Documentation", carrier.docs_url && h("a", { href: carrier.docs_url, target: "_blank", rel: "noopener" }, carrier.docs_url)],
      ["Added", instant(configuration.created_at)],
    ]),
    h("div", { class: "actions" },
      !configuration.is_default_outbound && button("Use it for calls out", () => post("set-default-outbound", "Calls out go through it, unless another account is chosen.")),
      configuration.inactive && button("Use it again", () => post("reactivate", "It is used again."), { kind: "primary" }),
      button("Delete", remove, { kind: "danger" })));
}

function numbersOf(numbers, agents, path, signal, done) {
  const set = async (number) => {
    await api.post(`${path}/phone-numbers/${number.id}/set-default-caller`, { signal });
    done(`Whoever is called sees ${number.address} from now on.`);
  };
  const remove = async (number) => {
    if (!(await confirm(`Remove ${number.address}? Calls to it are no longer answered here.`, "Remove"))) return;
    await api.delete(`${path}/phone-numbers/${number.id}`, { signal });
    done("The number is removed.");
  };
  return section("Numbers",
    table("Phone numbers", [
      ["Number", (row) => row.address],
      ["Label", (row) => row.label],
      ["Calls to it are answered by", (row) => (row.inbound_workflow_id
        ? link(row.inbound_workflow_name ?? `agent ${row.inbound_workflow_id}`, `/agents/${row.inbound_workflow_id}`) : "no agent")],
      ["Calls from it", (row) => [row.is_active ? null : badge("not in use", "busy"), " ", row.is_default_caller_id && badge("shown to whoever is called", "good")]],
      ["Actions", (row) => h("div", { class: "actions" },
        button("Edit", () => edit(row, agents, path, signal, done), { kind: "small", "aria-label": `Edit ${row.address}` }),
        !row.is_default_caller_id && button("Call from it", () => set(row), { kind: "small", "aria-label": `Call from ${row.address}` }),
        button("Remove", () => remove(row), { kind: "small danger", "aria-label": `Remove ${row.address}` }))],
    ], numbers, "It has no numbers yet. Add one: whoever is called sees it, and an agent answers calls to it."),
    h("div", { class: "actions" }, button("Add a number", () => edit(null, agents, path, signal, done))));
}

/** The numbers whose addresses at the carrier were set by connecting them; one may be removed here, and still lead here. */
function connectedSection(configuration, connected, signal) {
  if (!connected.length) return null;
  return section("Connected",
    table("Connected numbers", [
      ["Number", (number) => number],
      ["Actions", (number) => undoing(configuration.id, number, signal, () => go("/carriers"))],
    ], connected),
    h("p", { class: "quiet" }, "For these, the carrier was told from here where to send calls. Before you delete this account, undo that: what the carrier had before is forgotten with it."));
}

function rejectedCalls(rejected) {
  return section("Calls that no agent answered",
    table("Calls that no agent answered", [
      ["Latest", (row) => instant(row.last_at)],
      ["From", (row) => row.from_number],
      ["To", (row) => row.to_number],
      ["Why", (row) => [row.message, row.workflow_id && [", ", link(`agent ${row.workflow_id}`, `/agents/${row.workflow_id}`)]]],
      ["How many", (row) => String(row.count), { number: true }],
    ], rejected));
}

/** Ask for a number, new or changed, and store it; `listed`: the number as the list has it. */
async function edit(listed, agents, path, signal, done) {
  const record = listed && (await Edited.read(`${path}/phone-numbers/${listed.id}`, signal));
  const number = record?.value;
  const address = input({ placeholder: "+12025550123", maxlength: "255" });
  const country = input({ maxlength: "2", placeholder: "US" });
  const label = input({ value: number?.label ?? "", maxlength: "64" });
  const options = [["", "none"], ...agents.map((each) => [String(each.id), each.name])];
  if (number?.inbound_workflow_id && !agents.some((each) => each.id === number.inbound_workflow_id)) {
    options.push([String(number.inbound_workflow_id), `${listed.inbound_workflow_name ?? number.inbound_workflow_id} (archived)`]);
  }
  const agent = select(options, String(number?.inbound_workflow_id ?? ""));
  const isActive = checkbox(number?.is_active ?? true);
  const save = () => {
    const shared = { label: label.value.trim(), inbound_workflow_id: agent.value ? Number(agent.value) : null, is_active: isActive.checked };
    if (record) return record.send("PUT", { ...shared, clear_inbound_workflow: !agent.value });
    const body = { ...shared, address: address.value.trim(), country_code: country.value.trim() || null };
    return api.post(`${path}/phone-numbers`, { body, signal });
  };
  const asks = record?.asks("This number was", () => edit(listed, agents, path, signal, done));
  const made = await dialogForm({ title: number ? number.address : "Add a number", submit: number ? "Save" : "Add", act: save, asks },
    number ? null : [
      field("Number", address, { name: "address", required: true, help: "With + and country code, such as +12025550123." }),
      field("Country", country, { name: "country_code", help: "Two letters, such as US. Only needed for a number without +." }),
    ],
    field("Label", label, { name: "label", help: "For yourself, such as Front desk." }),
    field("Agent that answers calls to it", agent, { name: "inbound_workflow_id" }),
    field("In use", isActive, { name: "is_active", help: "A number that isn't in use makes no calls and answers none." }));
  if (made) done(number ? "The number is saved." : "The number is added.");
}

function urls(configuration, carrier) {
  const known = configuration.webhook_urls;
  return section(`To enter on the site of ${carrier.display_name}`, known
    ? [
      h("p", {}, "For calls to your numbers, the carrier has to know these two addresses. Numbers connected from here have them already, and calls out need none."),
      h("h3", {}, "When a call comes in"), copyable(known.inbound, "Copy the address for calls"),
      h("h3", {}, "When the state of such a call changes"), copyable(known.status, "Copy the address for states"),
    ]
    : callout("VOICEAPI_PUBLIC_URL isn't set, so no carrier can reach this service. ", link("What to do about it", "/carriers/connect")));
}

function credentials(record, carrier, signal, again, done) {
  const configuration = record.value;
  const name = input({ value: configuration.name, maxlength: "64" });
  const fields = credentialFields(carrier, configuration.credentials, configuration);
  const save = async () => {
    await record.send("PUT", { name: name.value.trim(), config: fields.read() });
    done("The account is saved.");
  };
  const asks = record.asks("This account was", again);
  return section("Name and credentials",
    details("Change them", formWith({ submit: "Save", act: save, saves: signal, asks }, field("Name", name, { name: "name", required: true }), fields)));
}

// The accounts at carriers, which connect calls, and the simulator.

import { api } from "../app/api.js";
import { go } from "../app/router.js";
import { badge, button, dialogForm, field, input, link, section, select, table } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { credentialFields } from "./setup/carrier-forms.js";
import { findings } from "./setup/doctor.js";

export default async function carriers({ root, signal, title }) {
  const [{ configurations }, { providers }] = await Promise.all([
    api.get("/organizations/telephony-configs", { signal }),
    api.get("/organizations/telephony-providers/metadata", { signal }),
  ]);
  title("Carriers");
  const names = new Map(providers.map((each) => [each.provider, each.display_name]));
  show(root,
    h("p", {}, "A carrier is the company that connects calls, such as Twilio. With an account there your agents call real telephones, and answer them. The simulator plays calls inside this service, for trying out."),
    h("div", { class: "actions" },
      link("Connect a number", "/carriers/connect", { class: "button primary" }),
      button("Add a carrier by hand", () => add(providers, signal))),
    section("Carrier accounts", table("Carrier accounts", [
      ["Name", (row) => link(row.name, `/carriers/${row.id}`)],
      ["Carrier", (row) => names.get(row.provider) ?? row.provider],
      ["Set up for calls out", (row) => [stateOf(row), " ", row.is_default_outbound && badge("used unless another is chosen")]],
      ["Telephone numbers", (row) => String(row.phone_number_count), { number: true }],
      ["What is missing", (row) => (row.inactive ? row.inactive_reason : row.outbound_blocked_reason) ?? ""],
    ], configurations, "There is no carrier account yet. Connect a number, or add the simulator by hand.")),
    findings(signal));
}

function stateOf(row) {
  if (row.inactive) return badge("set aside", "bad");
  return row.is_ready_for_outbound ? badge("complete", "good") : badge("incomplete", "busy");
}

async function add(providers, signal) {
  const name = input({ maxlength: "64" });
  const choice = select(providers.map((each) => [each.provider, each.display_name]), "twilio");
  const place = h("div");
  let fields = null;
  const chosen = () => {
    const carrier = providers.find((each) => each.provider === choice.value);
    fields = credentialFields(carrier);
    show(place, carrier.docs_url && h("p", {}, h("a", { href: carrier.docs_url, target: "_blank", rel: "noopener" }, `How to get these: the documentation of ${carrier.display_name}`)), fields);
  };
  choice.addEventListener("change", chosen);
  chosen();
  const made = await dialogForm({
    title: "Add a carrier",
    submit: "Add",
    act: () => api.post("/organizations/telephony-configs", { body: { name: name.value.trim(), config: fields.read() }, signal }),
  }, field("Carrier", choice, { required: true }), field("Name", name, { name: "name", required: true, help: "For yourself, such as Front desk." }), place);
  if (made) go(`/carriers/${made.id}`);
}

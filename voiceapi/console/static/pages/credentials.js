// Secrets that tools, fetches and webhooks send to other services.

import { api } from "../app/api.js";
import { Edited } from "../app/edited.js";
import {
  button, confirm, dialogForm, emptyState, field, input, instant, link, notify, section, select, table, textarea,
} from "../parts/components.js";
import { h, show } from "../parts/dom.js";

// The types: what people call them, and their data: [member, label, is it secret?]
const TYPES = {
  bearer_token: ["Token (Authorization: Bearer …)", [["token", "Token", true]]],
  api_key: ["API key in a header", [["header_name", "Header", false], ["api_key", "Key", true]]],
  basic_auth: ["User name and password", [["username", "User name", false], ["password", "Password", true]]],
  custom_header: ["Another header", [["header_name", "Header", false], ["header_value", "Value", true]]],
  none: ["None", []],
};

export default async function credentials({ root, signal, title }) {
  const list = h("div");
  const load = async () => show(list, credentialTable(await api.get("/credentials/", { signal }), load));
  await load();
  title("Credentials", [["Settings", "/settings"]]);
  const add = button("New credential", async () => {
    if (await edit(null)) await load();
  }, { kind: "primary" });
  show(root,
    h("p", {}, "The key or password of another service, which tools and webhooks send along. It is stored encrypted, and no page shows it again. Choose it in a tool, or in a step that sends a webhook or fetches data before the call."),
    h("div", { class: "actions" }, add), section("Credentials", list));
}

function credentialTable(records, reload) {
  const remove = async (record) => {
    const question = `Delete “${record.name}”? What uses it sends its requests without it; its name stays taken.`;
    if (!(await confirm(question, "Delete"))) return;
    await api.delete(`/credentials/${record.uuid}`);
    await reload();
  };
  const change = async (record) => {
    const edited = await Edited.read(`/credentials/${record.uuid}`);
    if (await edit(edited, () => change(record))) await reload();
  };
  return table("Credentials", [
    ["Name", (record) => record.name],
    ["Kind", (record) => TYPES[record.credential_type]?.[0] ?? record.credential_type],
    ["Description", (record) => record.description],
    ["Changed", (record) => instant(record.updated_at ?? record.created_at)],
    ["Actions", (record) => h("div", { class: "actions" },
      button("Change", () => change(record), { kind: "small", "aria-label": `Change ${record.name}` }),
      button("Delete", () => remove(record), { kind: "small danger", "aria-label": `Delete ${record.name}` }))],
  ], records, emptyState("There is no credential yet. A tool that asks another service usually needs one.",
    link("Go to the tools", "/tools", { class: "button" })));
}

/** Ask for a credential, new or changed, and store it; what is stored, or null. `again` asks anew for what is stored. */
async function edit(edited, again) {
  const record = edited?.value ?? null;
  const name = input({ value: record?.name ?? "" });
  const description = textarea(record?.description, { rows: "2" });
  const type = select(Object.entries(TYPES).map(([value, [text]]) => [value, text]), record?.credential_type ?? "bearer_token");
  const data = h("div");
  const controls = {};
  const isKept = () => record !== null && type.value === record.credential_type && Object.values(controls).every((each) => !each.value);
  const showData = () => {
    for (const member of Object.keys(controls)) delete controls[member];
    show(data, TYPES[type.value][1].map(([member, label, isSecret]) => {
      controls[member] = input({ type: isSecret ? "password" : "text", autocomplete: isSecret ? "new-password" : "off" });
      return field(label, controls[member], { name: `credential_data.${member}`, required: record?.credential_type !== type.value });
    }), record?.credential_type === type.value && type.value !== "none" &&
      h("p", { class: "help" }, "What is stored isn't shown. Leave these empty to keep it; otherwise fill in all."));
  };
  type.addEventListener("change", showData);
  showData();
  const save = async () => {
    const body = { name: name.value.trim(), description: description.value.trim(), credential_type: type.value };
    if (!isKept()) body.credential_data = Object.fromEntries(Object.entries(controls).map(([member, each]) => [member, each.value]));
    return edited ? edited.send("PUT", body) : api.post("/credentials/", { body });
  };
  const stored = await dialogForm({ title: record ? `Change “${record.name}”` : "New credential", submit: "Save", act: save, asks: edited?.asks("This credential was", again) },
    field("Name", name, { name: "name", required: true }),
    field("Description", description, { name: "description" }),
    field("Kind", type, { name: "credential_type" }),
    data);
  if (stored) notify("Saved.");
  return stored;
}

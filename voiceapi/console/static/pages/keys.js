// The API keys of the organization.

import { api } from "../app/api.js";
import { key } from "../app/session.js";
import { button, confirm, copyable, field, form, input, instant, section, showDialog, stateBadge, table } from "../parts/components.js";
import { h, show } from "../parts/dom.js";

export default async function keys({ root, signal, title }) {
  const list = h("div");
  const load = async () => show(list, keyTable(await api.get("/user/api-keys", { query: { include_archived: true }, signal }), load));
  await load();
  title("API keys", [["Settings", "/settings"]]);
  const name = input({ maxlength: "200" });
  const create = form("Make a key", async () => {
    const made = await api.post("/user/api-keys", { body: { name: name.value.trim() } });
    name.value = "";
    await load();
    await showDialog(`The key “${made.name}”`,
      h("p", {}, "Copy it now: it is shown only here, and stored nowhere."),
      copyable(made.api_key, "Copy the key"));
  }, field("Name", name, { name: "name", required: true, help: "Who or what will use it, such as Ada's laptop." }));
  show(root, section("New key", h("p", { class: "quiet" }, "With a key, a person opens this console and a program uses the API. Each may do everything here, so give everybody a key of their own, and archive those nobody needs."), create), section("Keys", list));
}

/** True if this tab itself works with the key. */
const isOwn = (record) => Boolean(key()?.startsWith(record.key_prefix));

function keyTable(records, reload) {
  const archive = async (record) => {
    const question = isOwn(record)
      ? `This tab seems to work with “${record.name}”. Once it is archived, you need another key to go on.`
      : `Archive “${record.name}”? What uses it is refused from then on.`;
    if (!(await confirm(question, "Archive"))) return;
    await api.delete(`/user/api-keys/${record.id}`);
    await reload();
  };
  const reactivate = async (record) => {
    await api.put(`/user/api-keys/${record.id}/reactivate`);
    await reload();
  };
  return table("API keys", [
    ["Name", (record) => [record.name, isOwn(record) && h("span", { class: "quiet" }, " (yours, in this tab)")]],
    ["Begins with", (record) => h("code", {}, `${record.key_prefix}…`)],
    ["State", (record) => stateBadge(record.is_active ? "active" : "archived")],
    ["Made", (record) => instant(record.created_at)],
    ["Last used", (record) => instant(record.last_used_at) || "never"],
    ["Actions", (record) => (record.is_active
      ? button("Archive", () => archive(record), { kind: "small danger", "aria-label": `Archive ${record.name}`, "data-key": record.id })
      : button("Use again", () => reactivate(record), { kind: "small", "aria-label": `Use ${record.name} again`, "data-key": record.id }))],
  ], records, "There is no key yet.");
}

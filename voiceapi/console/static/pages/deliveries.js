// Webhooks of ended runs: how they went, sending one again, and the secrets that sign them.

import { api } from "../app/api.js";
import { every, keepQuery } from "../app/router.js";
import { keepInQuery } from "../parts/address.js";
import { alert, button, confirm, copyable, instant, notify, pager, section, showDialog, table, tabs } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { delivery } from "./calls/delivery.js";

const LIMIT = 20;
// What is sent goes from one list to another by itself.
const POLL = 5000;
const STATES = [
  ["dead_letter", "Given up", "Nothing was given up: every receiver answered in time."],
  ["pending", "Waiting", "Nothing is waiting to be sent."],
  ["not_sent", "Not sent", "Nothing was held back. What a draft would send when you try it out waits here, and is sent only if you say so."],
  ["succeeded", "Delivered", "Nothing was delivered yet. An agent sends a webhook after each call or chat if it has a step that does so."],
];

export default async function deliveries({ root, query, signal, title }) {
  title("Webhook deliveries", [["Settings", "/settings"]]);
  const at = Math.max(0, STATES.findIndex(([state]) => state === query.get("state")));
  let refresh = null;
  let first = Number(query.get("page")) || 1;
  const view = (state, empty) => {
    const list = listOf(state, empty, first, signal);
    first = 1; // of the states that are opened later
    refresh = list.load;
    return list.place;
  };
  let isOpened = false; // as the address says
  show(root,
    h("p", {}, "A webhook is a message that this service sends to another system of yours after a call or chat, with what came of it."),
    h("div", { class: "card" }, tabs("States", STATES.map(([state, text, empty]) => [text, () => view(state, empty)]),
      { at, chosen: (number) => isOpened && keepQuery({ state: STATES[number][0] }) })),
    await secrets(signal));
  isOpened = true;
  every(POLL, signal, () => refresh(), { later: true });
}

/** The deliveries in one state, in `place`; `load` asks for them again. */
function listOf(state, empty, first, signal) {
  const place = h("div", {}, h("p", { class: "loading" }, "Loading…"));
  let page = first;
  let shown = null;
  const load = async () => {
    const found = await api.get("/organizations/webhook-deliveries", { query: { state, page, limit: LIMIT }, signal });
    const text = JSON.stringify(found);
    if (text === shown) return;
    shown = text;
    const turn = async (to) => {
      page = to;
      keepInQuery({ page: page > 1 ? page : "" });
      await load();
    };
    show(place, found.deliveries.length
      ? found.deliveries.map((each) => delivery(each, { reload: load, signal }))
      : h("p", { class: "empty" }, empty), pager(found.page, found.total_pages, turn));
  };
  load().catch((error) => error.name !== "AbortError" && show(place, alert(error)));
  return { place, load };
}

async function secrets(signal) {
  const place = h("div");
  const showAll = (found) => show(place, table("Secrets", [
    ["Secret", (row) => h("code", {}, row.secret)],
    ["Made", (row) => instant(row.created_at)],
  ], found.secrets, "There is no secret yet. The first one is made with the first webhook, or here."),
  h("div", { class: "actions" },
    button("Make a new secret", rotate),
    found.secrets.length > 1 && button("Let only the newest sign", retire, { kind: "danger" })));
  const load = async () => showAll(await api.get("/organizations/webhook-secrets", { signal }));
  const rotate = async () => {
    if (!(await confirm("Make a new secret? The one before it goes on signing beside it, until you let only the newest sign.", "Make it"))) return;
    const made = await api.post("/organizations/webhook-secrets/rotate", { signal });
    await load();
    await showDialog("The new secret", h("p", {}, "It is shown only now. Give it to the receivers of your webhooks."), copyable(made.secret, "Copy the secret"));
  };
  const retire = async () => {
    if (!(await confirm("Let only the newest secret sign? Receivers that know only the older one refuse webhooks from then on.", "Let it sign alone"))) return;
    showAll(await api.post("/organizations/webhook-secrets/retire", { signal }));
    notify("Only the newest secret signs.");
  };
  await load();
  return section("Secrets that sign webhooks",
    h("p", { class: "quiet" }, "A receiver that knows the secret can tell that a webhook comes from this service. You need them only if your receiver checks that."), place);
}

// A delivery of a webhook: how it went, what is sent, and sending it again.

import { api } from "./api.js";
import { badge, button, code, details, facts, instant, link, notify, seconds, stateBadge, table } from "./components.js";
import { h } from "./dom.js";

/** `reload` shows the deliveries anew; `isOfRun`: they are all of one run, which needn't be named. */
export function delivery(found, { reload, signal, isOfRun = false }) {
  const again = async () => {
    const path = `/workflow/${found.workflow_id}/runs/${found.run_id}/deliveries/${found.delivery_uuid}/redeliver`;
    await api.post(path, { signal });
    notify("It is sent again: it waits for the receiver's answer.");
    await reload();
  };
  const name = found.node_name || "Webhook";
  return h("article", { class: "delivery" },
    isOfRun ? h("h3", {}, name) : h("h2", {}, `${name} of `, link(`run ${found.run_id}`, `/agents/${found.workflow_id}/runs/${found.run_id}`)),
    facts([
      ["State", stateBadge(found.state)],
      ["To", found.url && `${found.method} ${found.url}`],
      ["Created", instant(found.created_at)],
      ["Next attempt", found.state === "pending" ? instant(found.next_attempt_at) : null],
      ["Finished", instant(found.finished_at)],
    ]),
    found.attempts.length > 0 && details(`${found.attempts.length} ${found.attempts.length === 1 ? "attempt" : "attempts"}`,
      table(`Attempts of ${found.delivery_uuid}`, [
        ["Number", (each) => String(each.number), { number: true }],
        ["When", (each) => instant(each.at)],
        ["Answer", (each) => (each.status ? badge(String(each.status), each.status < 300 ? "good" : "bad") : "")],
        ["Took", (each) => seconds(each.seconds), { number: true }],
        ["What went wrong", (each) => each.error],
        ["Note", (each) => each.note],
      ], found.attempts)),
    found.body !== null && details("What is sent", code(pretty(found.body), "Body of the webhook")),
    found.state === "pending" ? null : h("div", { class: "actions" }, button("Send it again", again)));
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

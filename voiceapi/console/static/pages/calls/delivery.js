// A delivery of a webhook, or of a run to a function of the app: how it went, what is sent, and doing it again.

import { api } from "../../app/api.js";
import { badge, button, code, details, facts, instant, link, notify, seconds, stateBadge, table } from "../../parts/components.js";
import { h } from "../../parts/dom.js";

/** `reload` shows the deliveries anew; `isOfRun`: they are all of one run, which needn't be named. */
export function delivery(found, { reload, signal, isOfRun = false }) {
  const isKept = found.state === "not_sent";
  const isFunction = found.method === "PYTHON";
  const send = async () => {
    const path = `/workflow/${found.workflow_id}/runs/${found.run_id}/deliveries/${found.delivery_uuid}/redeliver`;
    await api.post(path, { signal });
    notify(isFunction ? "The function gets the run again." : `It is sent${isKept ? "" : " again"}: it waits for the receiver's answer.`);
    await reload();
  };
  const name = found.node_name || "Webhook";
  return h("article", { class: "delivery" },
    isOfRun ? h("h3", {}, name) : h("h2", {}, `${name}, after `, link(`call or chat ${found.run_id}`, `/agents/${found.workflow_id}/runs/${found.run_id}`)),
    facts([
      ["State", stateBadge(found.state)],
      isFunction ? ["Function of the app", found.url] : ["To", found.url && `${found.method} ${found.url}`],
      ["Made", instant(found.created_at)],
      ["Next attempt", found.state === "pending" ? instant(found.next_attempt_at) : null],
      ["Finished", instant(found.finished_at)],
    ]),
    found.attempts.length > 0 && details(`${found.attempts.length} ${found.attempts.length === 1 ? "attempt" : "attempts"}`,
      table(`Attempts of ${found.delivery_uuid}`, [
        ["Number", (each) => String(each.number), { number: true }],
        ["When", (each) => instant(each.at)],
        ...(isFunction ? [] : [["Answer", (each) => (each.status ? badge(String(each.status), each.status < 300 ? "good" : "bad") : "")]]),
        ["Took", (each) => seconds(each.seconds), { number: true }],
        ["What went wrong", (each) => each.error],
        ["Note", (each) => each.note],
      ], found.attempts)),
    found.body !== null && details("What is sent", code(pretty(found.body), "Body of the webhook")),
    isKept && h("p", { class: "quiet" }, "A draft was tried out, so it was not sent. If you send it, it says that it is from a test."),
    found.state === "pending" ? null : h("div", { class: "actions" }, button(isKept ? "Send it" : isFunction ? "Call it again" : "Send it again", send)));
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

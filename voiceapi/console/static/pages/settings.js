// What can be set for the organization, each on a page of its own.

import { link } from "../parts/components.js";
import { h, show } from "../parts/dom.js";

const PAGES = [
  ["Language model", "/settings/models", "What agents speak with: a language model, or just the sentences you wrote."],
  ["Preferences", "/settings/preferences", "Time zone, calling hours, and limits of what calls may cost."],
  ["API keys", "/settings/keys", "Who may use this service: a key for each person and program."],
  ["Credentials", "/settings/credentials", "Keys and passwords of other services, for tools and webhooks."],
  ["Webhook deliveries", "/settings/deliveries", "What was sent to your other systems after calls, and what failed."],
  ["Do-not-call list", "/settings/do-not-call", "Telephone numbers that no agent calls."],
];

export default async function settings({ root, title }) {
  title("Settings");
  show(root, h("ul", { class: "tiles" }, PAGES.map(([name, path, text]) =>
    h("li", { class: "card" }, h("h2", {}, link(name, path)), h("p", {}, text)))));
}

// What can be set for the organization, each on a page of its own.

import { link } from "../parts/components.js";
import { h, show } from "../parts/dom.js";

const PAGES = [
  ["Language model", "/settings/models", "Which model speaks in this organization's agents."],
  ["Preferences", "/settings/preferences", "Time zone, calling hours, and limits for what calls may cost."],
  ["API keys", "/settings/keys", "Make, archive and reactivate the keys of programs and people."],
  ["Credentials", "/settings/credentials", "Secrets that tools and webhooks send to other services."],
  ["Webhook deliveries", "/settings/deliveries", "What was sent after calls, also to functions of the app, and what failed."],
  ["Do-not-call list", "/settings/do-not-call", "Numbers that are never called."],
];

export default async function settings({ root, title }) {
  title("Settings");
  show(root, h("ul", { class: "tiles" }, PAGES.map(([name, path, text]) =>
    h("li", { class: "card" }, h("h2", {}, link(name, path)), h("p", {}, text)))));
}

// Asks for an API key.

import { go } from "../app/router.js";
import { hasHostLogin } from "../app/session.js";
import { signInForm } from "../app/sign-in.js";
import { section } from "../parts/components.js";
import { h, show } from "../parts/dom.js";

export default async function signIn({ root, query, title }) {
  title("Welcome");
  const to = query.get("to") ?? "/";
  const { element, control } = signInForm(() => go(to.startsWith("/") && !to.startsWith("/sign-in") ? to : "/"));
  show(root, section("Sign in", h("p", {}, "This is where voice agents are made, tried out and watched. Your API key opens it."), element),
    hasHostLogin && h("p", {}, h("a", { href: "#/" }, "Go on without a key"), ", with the login of this site."));
  control.focus();
}

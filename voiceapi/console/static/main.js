// The frame: which pages there are, and the one that the address names.

import { ApiError } from "./app/api.js";
import { go, match, mayLeave, nextSignal, onNavigation } from "./app/router.js";
import { forgetKey, key, mayAskAgain, needsKey, onRefused, takeKeyFromAddress } from "./app/session.js";
import { askForKey } from "./app/sign-in.js";
import { alert, button, link, trail } from "./parts/components.js";
import { h, show } from "./parts/dom.js";

const page = (name) => () => import(`./pages/${name}.js`);

const ROUTES = [
  ["/", page("home")],
  ["/sign-in", page("sign-in")],
  ["/agents", page("agents")],
  ["/agents/:", page("agent")],
  ["/agents/:/versions", page("versions")],
  ["/agents/:/talk", page("talk")],
  ["/agents/:/tests", page("tests")],
  ["/agents/:/tests/:", page("case")],
  ["/agents/:/callers", page("callers")],
  ["/agents/:/replay", page("replay")],
  ["/agents/:/insights", page("insights")],
  ["/agents/:/runs/:", page("run")],
  ["/runs", page("runs")],
  ["/campaigns", page("campaigns")],
  ["/campaigns/new", page("campaign-new")],
  ["/campaigns/:", page("campaign")],
  ["/campaigns/:/contacts/:", page("contact")],
  ["/carriers", page("carriers")],
  ["/carriers/connect", page("connect")],
  ["/carriers/:", page("carrier")],
  ["/tools", page("tools")],
  ["/tools/:", page("tool")],
  ["/documents", page("documents")],
  ["/settings", page("settings")],
  ["/settings/models", page("models")],
  ["/settings/preferences", page("preferences")],
  ["/settings/keys", page("keys")],
  ["/settings/credentials", page("credentials")],
  ["/settings/deliveries", page("deliveries")],
  ["/settings/do-not-call", page("do-not-call")],
];

// What the navigation shows: [text, path]; a page below the path belongs to the entry.
const NAVIGATION = [
  ["Home", "/"],
  ["Agents", "/agents"],
  ["Runs", "/runs"],
  ["Campaigns", "/campaigns"],
  ["Carriers", "/carriers"],
  ["Tools", "/tools"],
  ["Documents", "/documents"],
  ["Settings", "/settings"],
];

const main = document.getElementById("main");
const bar = document.getElementById("bar");
const navigation = document.getElementById("navigation");
const menu = document.getElementById("menu");
const signOut = button("Sign out", async () => {
  if (!(await mayLeave())) return;
  forgetKey();
  go(needsKey() ? "/sign-in" : "/");
}, { kind: "small plain" });

function openMenu(isOpen) {
  menu.setAttribute("aria-expanded", String(isOpen));
  bar.classList.toggle("open", isOpen);
}

function showFrame(path) {
  const isHere = (entry) => (entry === "/" ? path === "/" : path === entry || path.startsWith(`${entry}/`));
  for (const each of navigation.children) {
    if (isHere(each.getAttribute("href").slice(1))) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  bar.hidden = menu.hidden = needsKey();
  signOut.hidden = key() === null;
  openMenu(false);
}

async function showPage(height, { isFirst = false } = {}) {
  if (needsKey() && !/^#\/sign-in\b/.test(location.hash)) {
    const to = location.hash.slice(1);
    const query = to && to !== "/" ? `?to=${encodeURIComponent(to)}` : "";
    history.replaceState(history.state, "", `#/sign-in${query}`);
  }
  const found = match(ROUTES, location.hash);
  const signal = nextSignal();
  const was = document.activeElement;
  const heading = h("h1", { tabindex: "-1" });
  const above = h("div");
  const root = h("div", { class: "page" });
  const title = (text, parents = null) => {
    if (signal.aborted) return;
    heading.textContent = text;
    if (parents) show(above, trail(parents));
    document.title = `${text} · voiceapi`;
  };
  mayAskAgain();
  showFrame(found?.path ?? "");
  main.replaceChildren(above, heading, root);
  window.scrollTo(0, 0);
  if (found) {
    title("Loading…");
    main.setAttribute("aria-busy", "true");
    try {
      const module = await found.load();
      if (signal.aborted) return;
      await module.default({ root, params: found.params, query: found.query, signal, title });
    } catch (error) {
      if (signal.aborted || error.name === "AbortError") return;
      showFailure(error, root, title);
    }
    if (signal.aborted) return;
    main.removeAttribute("aria-busy");
  } else {
    title("No such page");
    show(root, h("p", {}, "There is no such page. ", h("a", { href: "#/" }, "Go to the start.")));
  }
  window.scrollTo(0, height);
  // The heading is read out, unless somebody has gone on to another place meanwhile.
  const now = document.activeElement;
  if (!isFirst && (now === document.body || now === was)) heading.focus({ preventScroll: true });
}

function showFailure(error, root, title) {
  const titles = { 401: "You aren't signed in", 404: "It isn't there" };
  title((error instanceof ApiError && titles[error.status]) || "Something is wrong");
  // A module that can't be fetched is an error of the browser's, whose text says little.
  const shown = error instanceof ApiError ? error : new Error(`This page can't be shown: ${error.message}`);
  show(root, alert(shown), h("div", { class: "actions" }, button("Try again", () => go(location.hash.slice(1))),
    error.status === 401 && link("Sign in with a key", "/sign-in", { class: "button" })));
}

show(navigation, NAVIGATION.map(([text, entry]) => h("a", { href: `#${entry}` }, text)));
bar.append(signOut);
menu.addEventListener("click", () => openMenu(menu.getAttribute("aria-expanded") !== "true"));
document.querySelector(".top").addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || menu.getAttribute("aria-expanded") !== "true") return;
  openMenu(false);
  menu.focus();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the page, not a place in it
  main.focus();
});
onRefused(askForKey);
takeKeyFromAddress();
window.addEventListener("hashchange", takeKeyFromAddress);
onNavigation((height) => showPage(height));
showPage(0, { isFirst: true });

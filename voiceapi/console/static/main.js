// The frame: which pages there are, and the one that the address names.

import { ApiError } from "./app/api.js";
import { go, match, mayLeave, nextSignal, onNavigation } from "./app/router.js";
import { forgetKey, key, mayAskAgain, needsKey, onRefused, takeKeyFromAddress } from "./app/session.js";
import { askForKey } from "./app/sign-in.js";
import { alert, button, link, skeleton, trail } from "./parts/components.js";
import { h, show } from "./parts/dom.js";
import { listenForKeys, showKeys } from "./parts/keys.js";

const page = (name) => () => import(`./pages/${name}.js`);

// [address, module, the title where it doesn't depend on what the page asks for]
const ROUTES = [
  ["/", page("home"), "Home"],
  ["/sign-in", page("sign-in"), "Welcome"],
  ["/agents", page("agents"), "Agents"],
  ["/agents/new", page("agent-new"), "New agent"],
  ["/agents/:", page("agent")],
  ["/agents/:/versions", page("versions")],
  ["/agents/:/talk", page("talk")],
  ["/agents/:/tests", page("tests")],
  ["/agents/:/tests/:", page("case")],
  ["/agents/:/callers", page("callers")],
  ["/agents/:/replay", page("replay")],
  ["/agents/:/insights", page("insights")],
  ["/agents/:/runs/:", page("run")],
  ["/runs", page("runs"), "Calls"],
  ["/campaigns", page("campaigns"), "Campaigns"],
  ["/campaigns/new", page("campaign-new"), "New campaign"],
  ["/campaigns/:", page("campaign")],
  ["/campaigns/:/contacts/:", page("contact")],
  ["/carriers", page("carriers"), "Carriers"],
  ["/carriers/connect", page("connect"), "Connect a number"],
  ["/carriers/:", page("carrier")],
  ["/tools", page("tools"), "Tools"],
  ["/tools/:", page("tool")],
  ["/documents", page("documents"), "Documents"],
  ["/settings", page("settings"), "Settings"],
  ["/settings/models", page("models"), "Language model"],
  ["/settings/preferences", page("preferences"), "Preferences"],
  ["/settings/keys", page("keys"), "API keys"],
  ["/settings/credentials", page("credentials"), "Credentials"],
  ["/settings/deliveries", page("deliveries"), "Webhook deliveries"],
  ["/settings/do-not-call", page("do-not-call"), "Do-not-call list"],
];

// What the navigation shows: [text, path]; a page below the path belongs to the entry.
const NAVIGATION = [
  ["Home", "/"],
  ["Agents", "/agents"],
  ["Calls", "/runs"],
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

// Titles that were shown, by path: a page that is gone back to has its own at once.
const titles = new Map();
const SLOW = 600; // milliseconds until somebody who doesn't see the page hears that it loads

/** The pages that an address lies below, as far as their titles are known. */
function above(path) {
  return ROUTES.filter(([pattern, , title]) => title && path.startsWith(`${pattern}/`)).map(([pattern, , title]) => [title, pattern]);
}

async function showPage(height, { isFirst = false } = {}) {
  if (needsKey() && !/^#\/sign-in\b/.test(location.hash)) {
    const to = location.hash.slice(1);
    const query = to && to !== "/" ? `?to=${encodeURIComponent(to)}` : "";
    history.replaceState(history.state, "", `#/sign-in${query}`);
  }
  const found = match(ROUTES, location.hash);
  const path = found?.path ?? "";
  const signal = nextSignal();
  const was = document.activeElement;
  const heading = h("h1", { tabindex: "-1" });
  const belongsTo = h("div");
  const root = h("div", { class: "page" });
  const name = (text, parents) => {
    heading.textContent = text;
    if (parents?.length) show(belongsTo, trail(parents));
    document.title = `${text} · voiceapi`;
  };
  // The heading is read out once it has its text, unless somebody has gone on to another place meanwhile.
  let isNamed = isFirst;
  const title = (text, parents = null) => {
    if (signal.aborted) return;
    name(text, parents);
    if (found && parents?.length) titles.set(path, [text, parents]);
    const now = document.activeElement;
    if (!isNamed && (now === document.body || now === was)) heading.focus({ preventScroll: true });
    isNamed = true;
  };
  mayAskAgain();
  showFrame(path);
  main.replaceChildren(belongsTo, heading, root);
  window.scrollTo(0, 0);
  if (found) {
    const known = found.title ? [found.title, above(path)] : titles.get(path);
    if (known) title(...known);
    else name("Loading…", above(path));
    show(root, h("div", { class: "card" }, skeleton(8)));
    main.setAttribute("aria-busy", "true");
    const loading = h("p", { class: "hidden" }, "Loading");
    const timer = setTimeout(() => document.getElementById("notices").append(loading), SLOW);
    const end = () => (clearTimeout(timer), loading.remove());
    signal.addEventListener("abort", end);
    try {
      const module = await found.load();
      if (signal.aborted) return;
      await module.default({ root, params: found.params, query: found.query, signal, title });
    } catch (error) {
      if (signal.aborted || error.name === "AbortError") return;
      showFailure(error, root, title);
    }
    end();
    if (signal.aborted) return;
    main.removeAttribute("aria-busy");
  } else {
    title("No such page");
    show(root, h("p", {}, "There is no such page. ", h("a", { href: "#/" }, "Go to the start.")));
  }
  if (!isFirst) scrollBack(height, signal);
}

/** Scroll as far down as the page was, once its parts are there, unless somebody scrolls meanwhile. */
function scrollBack(height, signal) {
  const until = new AbortController();
  signal.addEventListener("abort", () => until.abort(), { once: true });
  for (const type of ["wheel", "touchmove", "keydown", "pointerdown"]) {
    window.addEventListener(type, () => until.abort(), { signal: until.signal, passive: true });
  }
  const growing = new ResizeObserver(() => {
    window.scrollTo(0, height);
    if (Math.ceil(window.scrollY) >= height) until.abort();
  });
  until.signal.addEventListener("abort", () => growing.disconnect());
  growing.observe(main);
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
bar.append(h("div", { class: "actions" }, button("Keyboard", showKeys, { kind: "small plain" }), signOut));
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
// A page's module is fetched while somebody still points at a link to it.
for (const type of ["pointerover", "focusin"]) {
  document.addEventListener(type, (event) => {
    const target = event.target.closest?.("a[href^='#/']");
    if (target && !needsKey()) match(ROUTES, target.getAttribute("href"))?.load().catch(() => {});
  }, { passive: true });
}
listenForKeys(main);
onRefused(askForKey);
takeKeyFromAddress();
window.addEventListener("hashchange", takeKeyFromAddress);
onNavigation((height) => showPage(height));
showPage(0, { isFirst: true });

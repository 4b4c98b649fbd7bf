// Which page the address names: `#/agents/3/talk?run=7`. A page is a module with a default export.

import { setQuery } from "../parts/address.js";
import { ask } from "../parts/dialogs.js";
import { notify } from "../parts/notices.js";
import { dropAll, isUnsaved, saveAll } from "../parts/unsaved.js";

/**
 * @typedef {object} Page
 * @property {HTMLElement} root where the page shows itself, instead of the skeleton that is in it
 * @property {string[]} params the parts of the address that its pattern leaves open
 * @property {URLSearchParams} query
 * @property {AbortSignal} signal aborted when the page is left: pass it to the API's requests and to `every`
 * @property {(text: string, parents?: [string, string][]) => void} title the page's heading and the window's title, and
 *   what the page is part of: links that stand above the heading. A page whose title stands in the table of routes has it
 *   before its module is there
 */

const LONGEST_PAUSE = 60_000;
const LONGEST_SAVE = 5000; // milliseconds until somebody who leaves a page is asked after all

let leave = new AbortController();
let isLeaving = false; // what is saved now isn't shown afterwards, because another page was asked for

/** Go to a page of the console, such as `/agents/3`. */
export function go(path) {
  if (isLeaving) return;
  if (location.hash === `#${path}`) window.dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = path;
}

/** Change the query of the address without loading the page again. */
export function keepQuery(values) {
  setQuery(new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "" && value != null)));
}

/** The module and the parameters for the address. `routes`: [[pattern, load, title], ...]; `:` stands for one part. */
export function match(routes, hash) {
  const [path, query = ""] = (hash.replace(/^#/, "") || "/").split("?");
  let parts;
  try {
    parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return null; // a percent sign that escapes nothing
  }
  for (const [pattern, load, title] of routes) {
    const wanted = pattern.split("/").filter(Boolean);
    if (wanted.length === parts.length && wanted.every((part, at) => part === ":" || part === parts[at])) {
      const params = parts.filter((_, at) => wanted[at] === ":");
      return { path, load, title, params, query: new URLSearchParams(query) };
    }
  }
  return null;
}

/** End what the page before was doing, and return the signal of the next one. */
export function nextSignal() {
  leave.abort();
  window.dispatchEvent(new Event("pageleft"));
  leave = new AbortController();
  return leave.signal;
}

/**
 * Call `act` every so many milliseconds until the signal, the first time at once, or `later`; never two at a time, and
 * not while nobody sees the tab. An error is shown once, and the pauses grow until it goes well again; what is gone is
 * left.
 */
export async function every(milliseconds, signal, act, { later = false } = {}) {
  let failures = 0;
  if (later) await turn(milliseconds, signal);
  while (!signal.aborted) {
    try {
      await act();
      failures = 0;
    } catch (error) {
      if (signal.aborted || error.name === "AbortError") return;
      if (failures === 0) notify(error.message, "error");
      if (error.status === 401 || error.status === 404) return;
      failures += 1;
    }
    await turn(Math.min(milliseconds * 2 ** failures, Math.max(LONGEST_PAUSE, milliseconds)), signal);
  }
}

/** Wait so many milliseconds, and for somebody to see the tab, or for the signal. */
async function turn(milliseconds, signal) {
  await new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end); // a page that stays open for days has one of them, not thousands
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener("abort", end);
  });
  while (document.hidden && !signal.aborted) {
    await new Promise((resolve) => {
      const end = () => {
        document.removeEventListener("visibilitychange", end);
        signal.removeEventListener("abort", end);
        resolve();
      };
      document.addEventListener("visibilitychange", end);
      signal.addEventListener("abort", end);
    });
  }
}

// -- history: where the page was scrolled to, and whether it may be left

let here = 0; // the place in the history of the page that is shown
const scrolled = new Map();
let going = null; // called when the history has gone where `travel` sent it

/**
 * True if nothing is lost by leaving the page, or if it may be. What saves itself is saved; about the rest, and what can't
 * be saved, is asked.
 */
export async function mayLeave() {
  if (isUnsaved()) await Promise.race([saveBeforeLeaving({ unasked: true }), new Promise((resolve) => setTimeout(resolve, LONGEST_SAVE))]);
  if (isUnsaved()) {
    const answer = await ask("What you changed on this page isn't saved.",
      ["leave", "Leave without saving", "danger"], ["save", "Save and leave", "primary"]);
    if (answer === "no" || (answer === "save" && !(await saveBeforeLeaving()))) return false;
  }
  dropAll();
  return true;
}

async function saveBeforeLeaving(how) {
  isLeaving = true;
  try {
    const isSaved = await saveAll(how);
    await new Promise((resolve) => setTimeout(resolve)); // a dialog that was saved closes only now
    return isSaved;
  } finally {
    isLeaving = false;
  }
}

function travel(steps) {
  return new Promise((resolve) => {
    going = resolve;
    history.go(steps);
  });
}

/** Call `act` whenever the address names another page, which gets the height to scroll to once it is there. */
export function onNavigation(act) {
  history.scrollRestoration = "manual";
  here = history.state?.at ?? 0;
  history.replaceState({ at: here }, "");
  window.addEventListener("scroll", () => scrolled.set(here, window.scrollY), { passive: true });
  window.addEventListener("beforeunload", (event) => {
    if (isUnsaved()) event.preventDefault();
  });
  window.addEventListener("hashchange", async () => {
    if (going) {
      going();
      going = null;
      return;
    }
    const isBack = history.state?.at !== undefined;
    const there = isBack ? history.state.at : here + 1;
    history.replaceState({ at: there }, "");
    if (there !== here && isUnsaved()) {
      await travel(here - there);
      if (!(await mayLeave())) return;
      await travel(there - here);
    }
    here = there;
    act((isBack && scrolled.get(there)) || 0);
  });
}

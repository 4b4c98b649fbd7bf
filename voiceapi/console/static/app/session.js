// The API key of this tab. It is kept while the tab lives, and nowhere else.

const NAME = "voiceapi-key";

/** True if a host's login may let the page's requests in without a key. */
export const hasHostLogin = document.querySelector('meta[name="voiceapi-login"]')?.content === "host";

/** The key, or null: behind a host's login the page needs none. */
export function key() {
  return sessionStorage.getItem(NAME);
}

export function useKey(value) {
  sessionStorage.setItem(NAME, value);
}

export function forgetKey() {
  sessionStorage.removeItem(NAME);
}

/** True if no request can succeed before there is a key. */
export function needsKey() {
  return !hasHostLogin && key() === null;
}

export function isKey(text) {
  return /^[!-~]{16,128}$/.test(text);
}

/**
 * Take the key from `#key=...` of the address, which is cleaned at once so that no bookmark, history or screenshot shows
 * it.
 */
export function takeKeyFromAddress() {
  if (!location.hash.startsWith("#key=")) return;
  let given = location.hash.slice("#key=".length);
  try {
    given = decodeURIComponent(given);
  } catch {
    // A key may hold a percent sign that stands for itself.
  }
  history.replaceState(history.state, "", `${location.pathname}${location.search}#/`);
  if (isKey(given)) useKey(given);
}

let asking = null;
let declined = false;
let ask = async () => false;

/** `handler` asks for another key, and promises whether there is one now. */
export function onRefused(handler) {
  ask = handler;
}

/** A page that is opened may ask again, although the question was closed on the page before. */
export function mayAskAgain() {
  declined = false;
}

/**
 * The service refused this key (null: the host's login). True if the request can be sent again: another key is in use.
 * Requests that are refused together ask once; those of the page's own accord don't ask again.
 */
export async function renewed(refused, isWrite) {
  if (needsKey()) return false; // signed out meanwhile: the page that asks for a key is shown, or about to be
  if (key() !== refused) return true;
  if (declined && !isWrite) return false;
  asking ??= ask().finally(() => {
    asking = null;
  });
  const isRenewed = await asking;
  declined = !isRenewed;
  return isRenewed;
}

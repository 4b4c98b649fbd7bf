// What was typed and isn't stored yet. The router asks about it before its page is left.

const works = new Set();

/**
 * Ask before the page is left while `isUnsaved()`, until the signal. `save` stores it, and promises whether it could;
 * `isItself()` if that needs no question. `drop` is called once the page may be left.
 */
export function askBeforeLeaving(signal, isUnsaved, save, { isItself = () => false, drop = () => {} } = {}) {
  const work = { isUnsaved, save, isItself, drop };
  works.add(work);
  signal.addEventListener("abort", () => works.delete(work), { once: true });
}

/** True if something would be lost by leaving the page. */
export function isUnsaved() {
  return [...works].some((work) => work.isUnsaved());
}

/** Store all of it, or what needs no question; false once something couldn't be stored, which the page then shows. */
export async function saveAll({ unasked = false } = {}) {
  for (const work of [...works]) {
    if (work.isUnsaved() && (!unasked || work.isItself()) && !(await work.save())) return false;
  }
  return true;
}

/** Ask about none of it any more. */
export function dropAll() {
  for (const work of works) work.drop();
  works.clear();
}

/**
 * Signals for forms that take each other's place: each call ends the signal before it, and gives the next; all end with
 * `signal`.
 */
export function oneAfterAnother(signal) {
  let last = new AbortController();
  return () => {
    last.abort();
    last = new AbortController();
    return AbortSignal.any([last.signal, signal]);
  };
}

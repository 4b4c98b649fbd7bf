// What was done to a definition, one entry a step, and which of its states the service has. Undo goes back past Save.

import { at, differences, items, same, withAt } from "./items.js";

const MOST = 200;
const PAUSE = 1000; // milliseconds after which what is typed in the same field is a step of its own

/**
 * `document` is the definition now, never changed in place; `selection` the keys of what is selected; `saved` what the
 * service has. An entry: {label, before, after, selectionBefore, selectionAfter, mergeKey}.
 */
export class History {
  #done = [];
  #undone = [];
  #changed = -Infinity;

  constructor(document) {
    Object.assign(this, { document, saved: document, selection: new Set() });
  }

  get canUndo() {
    return this.#done.length > 0;
  }

  get canRedo() {
    return this.#undone.length > 0;
  }

  get isSaved() {
    return same(this.document, this.saved);
  }

  /** Take over a change at `now`, in milliseconds. Changes with one `mergeKey` are one entry until there is a pause. */
  change(label, document, { selection = this.selection, mergeKey = null, now = Date.now() } = {}) {
    const last = this.#done.at(-1);
    if (mergeKey !== null && last?.mergeKey === mergeKey && now - this.#changed < PAUSE) {
      Object.assign(last, { after: document, selectionAfter: selection });
    } else {
      this.#done.push({ label, before: this.document, after: document, selectionBefore: this.selection, selectionAfter: selection, mergeKey });
      if (this.#done.length > MOST) this.#done.shift();
    }
    this.#undone = [];
    this.#changed = now;
    Object.assign(this, { document, selection });
  }

  /** Begin a new entry with the next change: a field was left. */
  settle() {
    this.#changed = -Infinity;
  }

  /** Take the last change back. Its entry, or null if there is none. */
  undo() {
    const entry = this.#done.pop() ?? null;
    if (entry) {
      this.#undone.push(entry);
      Object.assign(this, { document: entry.before, selection: entry.selectionBefore });
    }
    this.settle();
    return entry;
  }

  redo() {
    const entry = this.#undone.pop() ?? null;
    if (entry) {
      this.#done.push(entry);
      Object.assign(this, { document: entry.after, selection: entry.selectionAfter });
    }
    this.settle();
    return entry;
  }

  /**
   * The service has taken `sent`, one of the states, and answered `stored`. What it filled in, such as the path of a
   * trigger or the mask of a secret, is filled into every state that has the item as it was sent: otherwise an undo would
   * take it away, and the next Save would make another path.
   */
  store(sent, stored) {
    const filled = new Map();
    const lists = ["nodes", "edges"].map((list) => [list, filledIn(sent, stored, list)]);
    const fill = (document) => {
      if (!filled.has(document)) filled.set(document, lists.reduce((found, [list, fills]) => fillIn(found, list, fills), document));
      return filled.get(document);
    };
    // What is the same stays the same object, which nothing has to be shown of again.
    if (!same(fill(sent), stored)) filled.set(sent, stored);
    for (const entry of [...this.#done, ...this.#undone]) Object.assign(entry, { before: fill(entry.before), after: fill(entry.after) });
    Object.assign(this, { document: fill(this.document), saved: fill(sent) });
    this.settle();
  }
}

/** By the key of an item: how it was stored otherwise than it was sent. */
function filledIn(sent, stored, list) {
  const before = new Map(items(sent, list).map(({ key, item }) => [key, item]));
  const found = items(stored, list).map(({ key, item }) => [key, before.has(key) ? differences(before.get(key), item) : []]);
  return new Map(found.filter(([, each]) => each.length));
}

function fillIn(document, list, fills) {
  if (!fills.size) return document;
  return items(document, list).reduce((found, { item, index, key }) => {
    const filled = (fills.get(key) ?? []).filter(({ path, from }) => same(at(item, path), from))
      .reduce((each, { path, to }) => withAt(each, path, to), item);
    return filled === item ? found : withAt(found, [list, index], filled);
  }, document);
}

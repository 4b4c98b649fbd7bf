// Saving: what isn't saved is kept in the tab, saves itself, tries again, and is joined with what was saved elsewhere.

import { BASE } from "../app/api.js";
import { same } from "./items.js";
import { merged } from "./merge.js";

const SWITCH = "voiceapi-saves-itself";
const AFTER = 2000; // milliseconds from the last change
const KEPT_WITHIN = 500;
const LONGEST_PAUSE = 30_000;
const MEMBERS = ["name", "workflow_definition", "workflow_configurations", "template_context_variables"];
// Where secrets are: members that only the service keeps, and URLs with a password.
const SECRET = /api_key$|^credentials$|^aws_(access|secret)_key$|^(custom|extra)_headers$/;
const PASSWORD = /^\s*[a-z][a-z0-9+.-]*:\/\/[^/?#\s]*@/i;

/** True unless this browser's user saves by hand. */
export const savesItself = () => localStorage.getItem(SWITCH) !== "off";

export function letSaveItself(isOn) {
  if (isOn) localStorage.removeItem(SWITCH);
  else localStorage.setItem(SWITCH, "off");
}

/** What of a workflow is edited. */
export const edited = (workflow) => Object.fromEntries(MEMBERS.map((name) => [name, workflow[name] ?? (name === "name" ? "" : {})]));

/** A value with those of its secrets that `base` has, as masks, and without all that were typed. */
export function withoutSecrets(value, base) {
  if (typeof value === "string") return PASSWORD.test(value) ? base : value;
  if (Array.isArray(value)) {
    const before = (each, index) => (each?.id === undefined ? base?.[index] : Array.isArray(base) ? base.find((one) => one?.id === each.id) : undefined);
    return value.map((each, index) => withoutSecrets(each, before(each, index)) ?? null);
  }
  if (!value || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value)
    .map(([name, each]) => [name, SECRET.test(name) ? base?.[name] : withoutSecrets(each, base?.[name])])
    .filter(([, each]) => each !== undefined));
}

/** `base` with both changes, each member by itself: {value, conflicts}. */
export function joined(base, mine, theirs, isTheirs = () => false) {
  const conflicts = [];
  const value = Object.fromEntries(MEMBERS.map((name) => {
    const isText = name === "name";
    const [before, one, other] = [base, mine, theirs].map((each) => (isText ? { name: each.name } : each[name]));
    const found = merged(before, one, other, (id) => isTheirs(`${name} ${id}`));
    conflicts.push(...found.conflicts.map((each) => ({ ...each, id: `${name} ${each.id}`, member: name })));
    return [name, isText ? found.value.name : found.value];
  }));
  return { value, conflicts };
}

/** True if `stored` has the changes that made `base` this. */
function has(base, mine, stored) {
  const { value, conflicts } = joined(base, mine, stored);
  return !conflicts.length && same(value, stored);
}

/**
 * Saves the agent with this id. `record`: its `Edited`, at its path. The page gives `now()`, what is on it, and `base()`,
 * what the service has of that, both as `edited` gives them; and takes:
 *
 * - `took(sent, workflow)`: the service has taken `sent`, and the workflow is now so;
 * - `show(label, value, workflow)`: a change that was joined; without a workflow nothing was stored;
 * - `ask(conflicts, act)`: have somebody choose, and call `act` with a Set of ids of those to take from elsewhere;
 * - `say(state, error)`: unsaved, saving, saved, unreachable, refused, differing;
 * - `notify(sentence)`, and `others(count)`: in how many other tabs it is open.
 */
export function draft({ id, record, now, base, took, show, ask, say, notify, others, signal }) {
  const name = `voiceapi-draft-${new URL(BASE).pathname}-${id}`;
  const path = `/workflow/${id}`;
  let saving = null;
  let timer = 0;
  let keeping = 0;
  let failures = 0;
  let unsure = null; // what was sent without an answer: the service may have it
  let isDiffering = false;
  let offered = JSON.parse(sessionStorage.getItem(name));

  function changes() {
    const [before, after] = [base(), now()];
    return Object.fromEntries(MEMBERS.filter((each) => !same(before[each], after[each])).map((each) => [each, after[each]]));
  }
  const isUnsaved = () => Object.keys(changes()).length > 0;

  // -- kept in the tab

  function keep() {
    clearTimeout(keeping);
    keeping = 0;
    if (offered) return; // nobody has said yet what is to become of it
    if (!isUnsaved()) return void sessionStorage.removeItem(name);
    const before = base();
    try {
      sessionStorage.setItem(name, JSON.stringify({ at: Date.now(), base: before, mine: withoutSecrets(now(), before) }));
    } catch {
      // The tab's storage is full: what is there is older.
    }
  }

  /** What an earlier visit kept, unless the service has it: {at, restore, drop}, or null. */
  function offer() {
    const found = offered;
    if (!found) return null;
    const end = () => {
      offered = null;
      keep();
    };
    if (has(found.base, found.mine, base())) {
      end();
      return null;
    }
    const restore = (isTheirs) => {
      const { value, conflicts } = joined(found.base, found.mine, now(), isTheirs);
      if (conflicts.length && !isTheirs) {
        ask(conflicts, (ids) => restore((each) => ids.has(each)));
        return;
      }
      offered = null;
      show("Restored what wasn't saved", value);
      changed();
    };
    return { at: new Date(found.at), restore: () => restore(), drop: end };
  }

  // -- saving

  const soon = (pause) => {
    clearTimeout(timer);
    timer = setTimeout(() => save().catch((error) => {
      if (error.name !== "AbortError") throw error;
    }), pause);
  };

  /** Something was changed on the page. */
  function changed() {
    if (!keeping) keeping = setTimeout(keep, KEPT_WITHIN);
    if (!saving && !isDiffering) say(isUnsaved() ? "unsaved" : "saved");
    if (isUnsaved() && savesItself()) soon(AFTER);
  }

  /** Save what isn't; true if it is. An error is said, too. */
  async function save() {
    while (saving) await saving.catch(() => {});
    if (!isUnsaved()) return true;
    saving = attempt();
    try {
      return await saving;
    } finally {
      saving = null;
    }
  }

  async function attempt() {
    clearTimeout(timer);
    try {
      if (isDiffering && !(await join())) return false;
      let isDone = false;
      for (let tries = 0; tries < 3 && !isDone && isUnsaved(); tries += 1) {
        const [sent, body] = [now(), changes()];
        say("saving");
        try {
          const workflow = await record.send("PUT", body, path);
          [unsure, failures] = [null, 0];
          took(sent, workflow);
          announce();
          isDone = true;
        } catch (error) {
          if (error.status === 0 || error.status >= 500) unsure = sent;
          if (error.status !== 412) throw error;
          if (!(await join())) return false;
        }
      }
      keep();
      say(isUnsaved() ? "unsaved" : "saved");
      if (isUnsaved() && savesItself()) soon(AFTER);
      return isDone || !isUnsaved();
    } catch (error) {
      fail(error);
      return false;
    }
  }

  function fail(error) {
    if (error.name === "AbortError") throw error;
    keep();
    if (error.status && error.status < 500 && error.status !== 429) {
      say("refused", error);
      return;
    }
    say("unreachable", error);
    failures += 1;
    if (savesItself()) soon(Math.min(1000 * 2 ** failures, LONGEST_PAUSE));
  }

  // -- saved elsewhere

  /** Join what is here with what is stored now; false if somebody has to choose. `isTheirs`: what was chosen. */
  async function join(isTheirs = null, isFromTab = false) {
    if (!isTheirs) await record.reload();
    const workflow = record.value;
    const theirs = edited(workflow);
    if (unsure && has(base(), unsure, theirs)) {
      took(unsure, workflow);
      unsure = null;
      return true;
    }
    const wasUnsaved = isUnsaved();
    const { value, conflicts } = joined(base(), now(), theirs, isTheirs ?? undefined);
    isDiffering = conflicts.length > 0 && !isTheirs;
    if (isDiffering) {
      say("differing");
      ask(conflicts, async (ids) => {
        await join((each) => ids.has(each));
        await save();
      });
      return false;
    }
    show("Joined what was saved elsewhere", value, workflow);
    if (!isTheirs) {
      const where = isFromTab ? "in another tab" : "elsewhere";
      notify(wasUnsaved ? `Saved ${where}. Both changes are here.` : `Saved ${where}, and shown here.`);
    }
    keep();
    say(isUnsaved() ? "unsaved" : "saved");
    return true;
  }

  // -- other tabs of this browser

  const channel = new BroadcastChannel(name);
  const me = `${Math.random()}`;
  const tabs = new Set();
  const post = (message) => channel.postMessage({ from: me, ...message });
  const announce = () => post({ is: "saved", tag: record.tag });

  channel.addEventListener("message", async ({ data }) => {
    if (data.is === "left") tabs.delete(data.from);
    else tabs.add(data.from);
    if (data.is === "opened") post({ is: "here" });
    others(tabs.size);
    if (data.is !== "saved" || data.tag === record.tag) return;
    while (saving) await saving.catch(() => {});
    if (data.tag === record.tag || signal.aborted) return;
    try {
      if ((await join(null, true)) && isUnsaved() && savesItself()) soon(AFTER);
    } catch (error) {
      // The next save asks again.
      if (error.name !== "AbortError" && isUnsaved()) fail(error);
    }
  });
  post({ is: "opened" });

  /** What is here isn't wanted any more. */
  function drop() {
    if (!offered) sessionStorage.removeItem(name);
  }

  window.addEventListener("pagehide", keep, { signal });
  window.addEventListener("pagehide", () => post({ is: "left" }), { signal });
  window.addEventListener("online", () => failures && savesItself() && soon(0), { signal });
  document.addEventListener("visibilitychange", () => {
    keep();
    if (document.hidden && savesItself() && isUnsaved()) soon(0);
  }, { signal });
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    clearTimeout(keeping);
    post({ is: "left" });
    channel.close();
  });

  return { save, changed, isUnsaved, base, offer, join, announce, drop };
}

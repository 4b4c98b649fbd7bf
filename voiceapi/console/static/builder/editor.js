// The editor of a definition: its canvas, the form of what is selected there, the findings, and the JSON beside it.

import { api } from "../app/api.js";
import { alert, badge, button, debounced, notify, select } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { building } from "./building.js";
import { canvas } from "./canvas.js";
import * as change from "./changes.js";
import { History } from "./history.js";
import { items, keyAt, kindOf, nameOf, withKey } from "./items.js";
import { edgeForm, nodeForm, noteForm, showFindings } from "./node-form.js";
import { drawnPlaces, missingPlaces } from "./placing.js";
import { showing } from "./showing.js";

// How findings are named, and the kind of their badge, the worst first.
const SEVERITIES = { error: ["Error", "bad"], warning: ["Warning", "busy"], note: ["Hint", ""] };
const NOTHING = new Set();

/**
 * `configurations()` gives those that the definition is checked with, undefined for the stored ones. `changed` is called
 * after each change, `save` by its key. Returned: `element`; `definition()`; `isSaved()`; `saved()`, what the service has;
 * `store(sent, stored)` when it has taken a definition and answered another; `join(label, definition, stored)`, a change from
 * elsewhere, with what the service has if that is another now; `check()` once it is quiet; `open(list, id)` a form, false if it isn't there;
 * `showErrors(findings)` of a publish.
 */
export async function editor({ definition, name, workflowId, types, choices, configurations, changed, save, signal }) {
  const specs = new Map(types.map((spec) => [spec.name, spec]));
  const history = new History(definition);
  let [found, suppressed] = [[], 0]; // what the check found last, and how much is ignored
  let findings = []; // of these, what is shown
  let form = null;
  let dropNotice = () => {};
  const seen = `voiceapi-view-${workflowId}`;
  const builds = building({
    definition: () => history.document, specs, view: () => view, apply, remove,
    refresh() {
      showPanel();
      setFindings(found, suppressed);
    },
  });
  const view = canvas({
    label: `${name()}, drawing`,
    specs,
    view: JSON.parse(sessionStorage.getItem(seen)),
    seen: (at) => sessionStorage.setItem(seen, JSON.stringify(at)),
    act: {
      select: (keys) => choose(keys, { isShown: false }),
      move: (places, how) => {
        const moved = history.selection.size === 1 ? named([...history.selection][0]) : "steps";
        apply(`Moved ${moved}`, change.withPlaces(history.document, places), { mergeKey: how === "key" ? `nudge ${[...history.selection]}` : null });
      },
      resize: (key, by) => apply("Changed the size of a note", change.withSize(history.document, key, by)),
      open: () => panel.querySelector("h2").focus(),
      ...builds.act,
    },
    commands: [
      ...builds.commands,
      { id: "remove", keys: "Delete Backspace", words: "Remove what is selected", when: () => view.chosen().size > 0, run: remove },
      { id: "undo", keys: "Ctrl+z", words: "Take the last change back, also past Save", when: () => history.canUndo, run: () => step(history.undo()) },
      { id: "redo", keys: "Ctrl+Shift+z Ctrl+y", words: "Do it again", when: () => history.canRedo, run: () => step(history.redo()) },
      { id: "save", keys: "Ctrl+s", words: "Save, also from a form", run: save },
    ],
  });
  signal.addEventListener("abort", view.end);
  const shown = showing({ workflowId, signal, view, definition: () => history.document, alone: (isIt) => element.classList.toggle("comparing", isIt) });
  builds.listen(signal);
  const panel = h("section", { class: "card editor-panel", "aria-label": "What is selected" });
  const summary = h("div", { class: "findings-summary", role: "status" });
  const list = h("ul", { class: "plain-list findings" });
  const text = h("textarea", { class: "code json", rows: "30", spellcheck: "false", "aria-label": "The definition as JSON" });
  const complaint = h("p", { class: "form-alert", role: "status", hidden: true });
  const undo = button("Undo", () => step(history.undo()), { kind: "small", disabled: true });
  const redo = button("Redo", () => step(history.redo()), { kind: "small", disabled: true });
  const json = button("JSON", () => showJson(json.getAttribute("aria-pressed") !== "true"), { kind: "small", "aria-pressed": "false" });
  const newType = select(types.map((spec) => [spec.name, spec.display_name]), "agentNode", { "aria-label": "Type of the new step" });
  const tools = h("div", { class: "actions" },
    newType,
    button("Add step", () => builds.add(newType.value), { kind: "small" }),
    button("Add note", builds.addNote, { kind: "small" }),
    button("Arrange", arrange, { kind: "small", title: "Put the steps in rows, from the start down" }),
    undo,
    redo,
    json);

  // -- requests whose older answers are dropped

  function latest(ask, use) {
    let asking = null;
    signal.addEventListener("abort", () => asking?.abort());
    return async () => {
      if (signal.aborted) return; // the page was left before the pause after the last change was over
      asking?.abort();
      const mine = (asking = new AbortController());
      try {
        const answer = await ask(mine.signal);
        if (asking === mine && !signal.aborted) use(answer);
      } catch (error) {
        if (error.name === "AbortError" || asking !== mine || signal.aborted) return;
        use(null, error);
      }
    };
  }

  const check = latest((abort) => api.post("/lint", {
    body: { workflow_definition: history.document, workflow_configurations: configurations(), workflow_id: workflowId }, signal: abort,
  }), (answer, error) => {
    if (error) {
      show(summary, alert(error));
      return;
    }
    setFindings(answer.findings, answer.suppressed);
  });

  const checkSoon = debounced(check, 350);

  // -- changes

  const now = (key) => withKey(history.document, key)?.item;
  const NAMES = { node: nameOf, edge: (edge) => edge?.data?.label || "a path", note: () => "a note" };
  const named = (key) => NAMES[kindOf(key)](now(key));

  /** Take over a change. `mergeKey`: of what is typed, which is undone together. */
  function apply(label, next, { selection, mergeKey = null, isTyped = false } = {}) {
    history.change(label, next, { selection, mergeKey });
    showChange(isTyped);
  }

  /** Show what an undo or a redo led to. */
  function step(entry) {
    if (!entry) return;
    showChange();
    const [first] = history.selection;
    if (first) view.reveal(first);
  }

  function showChange(isTyped = false) {
    dropNotice();
    undo.disabled = !history.canUndo;
    redo.disabled = !history.canRedo;
    view.paint(history.document, history.selection);
    if (!isTyped) showPanel();
    checkSoon();
    changed();
  }

  async function arrange() {
    const found = await drawnPlaces(history.document, "layered", signal);
    apply("Arranged all", change.withPlaces(history.document, found));
    view.fit();
  }

  /** Remove what is selected, unasked: the notice takes it back. */
  function remove() {
    choose(view.chosen());
    const { definition: next, nodes, edges, notes } = change.without(history.document, history.selection);
    const counted = (found, one, noun) => found.length && (found.length === 1 ? one(found[0]) : `${found.length} ${noun}`);
    const what = [
      counted(nodes, nameOf, "steps"),
      counted(edges, (edge) => (nodes.length ? "1 path" : `the path “${edge.data?.label || edge.id}”`), "paths"),
      counted(notes, () => "a note", "notes"),
    ].filter(Boolean).join(" and ");
    if (!what) return;
    apply(`Removed ${what}`, next, { selection: NOTHING });
    view.focus();
    dropNotice = notify(`Removed ${what}.`, "", ["Undo", () => {
      step(history.undo());
      view.focus();
    }]);
  }

  // -- what is selected

  function showJson(isShown) {
    json.setAttribute("aria-pressed", String(isShown));
    showPanel();
    if (isShown) text.focus();
  }

  /** Select by keys; `isShown`: and show it on the canvas. */
  function choose(keys, { isShown = true } = {}) {
    if (keys.size) json.setAttribute("aria-pressed", "false");
    history.selection = keys;
    history.settle();
    if (isShown) view.paint(history.document, keys);
    showPanel();
  }

  /** Select this alone, and go to its form; `isNear`: with the canvas so that it can be read. */
  function open(key, { isNear = false } = {}) {
    choose(new Set([key]));
    if (isNear) view.near(key);
    else view.reveal(key);
    panel.querySelector("h2").focus();
  }

  const removing = () => button("Remove", remove, { kind: "small danger" });
  const closing = () => button("Close", () => {
    choose(NOTHING);
    view.focus();
  }, { kind: "small" });

  function showPanel() {
    form = null;
    const isJson = json.getAttribute("aria-pressed") === "true";
    panel.classList.toggle("is-json", isJson);
    const [key, ...others] = [...history.selection].filter(now);
    if (isJson) {
      if (document.activeElement === text) return;
      writeJson();
      show(panel, h("h2", { tabindex: "-1" }, "Definition as JSON"), complaint, text);
    } else if (!key) {
      show(panel, h("h2", { tabindex: "-1" }, "Nothing selected"),
        h("p", {}, "Click a step to change what the agent says and finds out there, or a path to change when the conversation goes that way. The + below a step adds what comes next."),
        h("p", {}, "Talk tries the agent as it is here. Calls use it once you press Publish."),
        h("p", {}, "By keys, Tab and the arrows select, Enter goes to the form, Delete removes, and ? lists all keys."));
    } else if (others.length) {
      show(panel, h("h2", { tabindex: "-1" }, `${others.length + 1} selected`),
        h("p", {}, "Drag one of them, or hold Shift and press the arrows, to move them together."),
        h("p", { class: "actions" }, removing(), closing()));
    } else {
      showItem(key, withKey(history.document, key));
    }
  }

  function showItem(key, { item, index }) {
    const kind = kindOf(key);
    const isNode = kind === "node";
    const spec = isNode ? specs.get(item.type) : null;
    const set = (path, value) => {
      const found = withKey(history.document, key); // it may stand elsewhere by now, or was removed in another tab
      if (!found) return;
      apply(`Changed ${named(key)}`, change.withMember(history.document, `${kind}s`, found.index, path, value),
        { mergeKey: `${key} ${path.join(".")}`, isTyped: true });
      if (path.at(-1) === "name") heading.textContent = named(key);
    };
    const title = { node: () => nameOf(item), edge: () => "Path", note: () => "Note" }[kind]();
    const heading = h("h2", { tabindex: "-1" }, title);
    const copy = structuredClone(item);
    form = isNode ? nodeForm(copy, spec, set, choices) : kind === "note" ? noteForm(copy, set) : edgeForm(copy, history.document, set);
    show(panel,
      heading,
      h("p", { class: "actions" }, isNode && badge(spec?.display_name ?? String(item.type)),
        h("span", { class: "quiet" }, `id ${item.id ?? "missing"}`), removing(), closing()),
      h("ul", { class: "plain-list findings here", "aria-label": "Findings" }),
      ignored(kind, { item, index }),
      form,
      isNode && builds.waysOn(key, open));
    showFindingsHere();
  }

  // A field that is left: what is typed next is undone by itself.
  panel.addEventListener("change", () => history.settle());
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    view.focus();
  });

  // -- findings

  function setFindings(given, left = 0) {
    [found, suppressed] = [given, left];
    // Nothing is wrong yet with what is still being typed.
    findings = found.filter((each) => !builds.isFresh(placeOfFinding(each)?.key));
    mark();
    const counts = Object.entries(SEVERITIES).map(([severity, [label, kind]]) => [
      findings.filter((each) => each.severity === severity).length, label.toLowerCase(), kind,
    ]);
    show(summary,
      !counts[0][0] && badge("No errors", "good"),
      counts.filter(([count]) => count).map(([count, noun, kind]) => badge(`${count} ${noun}${count === 1 ? "" : "s"}`, kind)),
      suppressed > 0 && h("span", { class: "quiet" }, `${suppressed} ignored`));
    show(list, findings.map((finding) => h("li", {}, describe(finding, { isLink: true }))));
    showFindingsHere();
  }

  /** Have a rule say nothing about a step or a path from now on. */
  function ignore({ kind, code }, { item, index }) {
    const codes = Array.isArray(item.data?.lint_ignore) ? item.data.lint_ignore : [];
    apply(`Ignored ${code}`, change.withMember(history.document, `${kind}s`, index, ["data", "lint_ignore"], [...codes, code]));
  }

  /** What is ignored here, each with a button that has it shown again. */
  function ignored(kind, { item, index }) {
    const codes = Array.isArray(item.data?.lint_ignore) ? item.data.lint_ignore : [];
    const again = (code) => button("Show again", () => {
      const rest = codes.filter((each) => each !== code);
      apply(`Show ${code} again`, change.withMember(history.document, `${kind}s`, index, ["data", "lint_ignore"], rest.length ? rest : undefined));
      panel.querySelector("h2").focus();
    }, { kind: "small", "aria-label": `Show ${code} again` });
    return codes.length > 0 && h("p", { class: "quiet" }, "Ignored findings: ", codes.map((code) => [h("span", { class: "code" }, String(code)), " ", again(code), " "]));
  }

  function placeOfFinding(finding) {
    if (finding.kind === "workflow" || finding.id === null) return null;
    return items(history.document, `${finding.kind}s`).findLast(({ item }) => String(item.id) === finding.id) ?? null;
  }

  function describe(finding, { isLink = false } = {}) {
    const place = isLink ? placeOfFinding(finding) : null;
    const what = badge(...SEVERITIES[finding.severity]);
    const code = finding.code && [" ", h("span", { class: "code quiet" }, finding.code)];
    if (!place) return [what, " ", finding.field && finding.kind === "workflow" ? `${finding.field}: ` : "", finding.message, code];
    const named = finding.kind === "node" ? nameOf(place.item) : `Path “${place.item.data?.label ?? place.item.id}”`;
    return [what, " ", button(named, () => open(place.key), { kind: "small" }), " ", finding.message, code,
      finding.suppressible && [" ", button("Ignore", () => ignore(finding, place), {
        kind: "small", "aria-label": `Ignore ${finding.code} at ${named}`,
      })]];
  }

  function mark() {
    const marks = new Map();
    for (const finding of findings.filter(({ kind, id }) => kind !== "workflow" && id !== null)) {
      for (const { item, key } of items(history.document, `${finding.kind}s`)) {
        if (String(item.id) === finding.id) marks.set(key, [...marks.get(key) ?? [], finding]);
      }
    }
    view.mark(marks);
  }

  function showFindingsHere() {
    const here = panel.querySelector(".findings.here");
    if (!here) return;
    const [key] = history.selection;
    const rest = showFindings(form, findings.filter((each) => each.kind === kindOf(key) && each.id === String(now(key).id)));
    show(here, rest.map((finding) => h("li", {}, describe(finding))));
  }

  // -- the JSON

  function writeJson() {
    text.value = JSON.stringify(history.document, null, 2);
    complaint.hidden = true;
  }

  function readJson() {
    try {
      const value = JSON.parse(text.value);
      if (!value || typeof value !== "object" || Array.isArray(value)) throw new Error("a definition is an object");
      complaint.hidden = true;
      if (JSON.stringify(value) !== JSON.stringify(history.document)) apply("Changed the JSON", value, { mergeKey: "JSON" });
    } catch (error) {
      complaint.textContent = `This isn't taken over yet: ${error.message}.`;
      complaint.hidden = false;
    }
  }
  text.addEventListener("input", debounced(readJson, 400));
  text.addEventListener("change", readJson);

  showPanel();
  for (const [key, place] of await missingPlaces(history.document, signal)) view.placed.set(key, place);
  view.paint(history.document, history.selection);
  check(); // what it finds is shown when it comes
  const element = h("div", { class: "editor" }, h("div", { class: "stack" }, tools, view.element, shown.control, shown.element, h("div", {}, summary, list)), panel);
  element.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "s" || event.defaultPrevented) return;
    event.preventDefault();
    if (document.activeElement === text) readJson();
    save();
  });
  return {
    element,
    light: view.light,
    definition: () => history.document,
    isSaved: () => history.isSaved,
    saved: () => history.saved,
    check: checkSoon,
    store(sent, stored) {
      history.store(sent, stored);
      // While something is typed, the form stays as it is.
      if (!panel.contains(document.activeElement)) showPanel();
      view.paint(history.document, history.selection);
      check();
    },
    join(label, joined, stored = history.saved) {
      const [key] = history.selection;
      history.change(label, joined);
      history.saved = stored;
      history.settle();
      // While something is typed, the form stays as it is, as long as there is what it is about.
      showChange(panel.contains(document.activeElement) && (!key || now(key) !== undefined));
    },
    open(list, id) {
      const found = items(history.document, list).findLast(({ item }) => String(item.id) === id);
      if (found) open(found.key, { isNear: true });
      return Boolean(found);
    },
    showErrors(errors) {
      choose(NOTHING);
      setFindings([...errors.map((each) => ({ ...each, severity: "error" })), ...findings.filter((each) => each.severity !== "error")]);
    },
  };
}

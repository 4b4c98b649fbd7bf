// The editor of a definition: its drawing, the form of what is chosen in it, the findings, and the JSON beside it.

import { api } from "../app/api.js";
import { alert, badge, button, confirm, debounced, select } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import * as change from "./definition.js";
import { graphView } from "./graph-view.js";
import { edgeForm, nodeForm, showFindings, waysOn } from "./node-form.js";

const MOST_UNDONE = 100;
const COALESCED = 1000; // milliseconds in which what is typed is undone together
// How findings are named, and the kind of their badge, the worst first.
const SEVERITIES = { error: ["Error", "bad"], warning: ["Warning", "busy"], note: ["Note", ""] };

/**
 * `configurations()` gives those that the definition is checked with, undefined for the stored ones. `changed` is called
 * after each change. Returned: `element`, `definition()`, `reset(definition)` for
 * what is stored now, `check()` once it is quiet, `showErrors(findings)` of a publish.
 */
export async function editor({ definition, name, workflowId, types, choices, configurations, changed, signal }) {
  const specs = new Map(types.map((spec) => [spec.name, spec]));
  const undone = [];
  let lastChange = 0;
  let chosen = null; // {kind, index}
  let findings = [];
  let view = null;
  let form = null;
  const drawn = h("div", { class: "editor-drawing" }, h("p", { class: "loading" }, "Drawing…"));
  const panel = h("section", { class: "card editor-panel", "aria-label": "What is chosen" });
  const summary = h("div", { class: "findings-summary", role: "status" });
  const list = h("ul", { class: "plain-list findings" });
  const text = h("textarea", { class: "code json", rows: "30", spellcheck: "false", "aria-label": "The definition as JSON" });
  const complaint = h("p", { class: "form-alert", role: "status", hidden: true });
  const undo = button("Undo", () => {
    if (undone.length) apply(undone.pop(), { isUndo: true });
  }, { kind: "small", disabled: true });
  const json = button("JSON", () => showJson(json.getAttribute("aria-pressed") !== "true"), { kind: "small", "aria-pressed": "false" });
  const newType = select(types.map((spec) => [spec.name, spec.display_name]), "agentNode", { "aria-label": "Type of the new node" });
  const tools = h("div", { class: "actions" },
    newType,
    button("Add node", () => add(newType.value), { kind: "small" }),
    button("Arrange", arrange, { kind: "small", title: "Put the nodes in layers, from the start on" }),
    undo,
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

  const picture = (layout, abort) => api.send("POST", "/workflow/graph", {
    body: { workflow_definition: definition, name: name(), layout }, signal: abort,
  }).then((response) => response.text());

  const draw = latest((abort) => picture("stored", abort), (svg, error) => {
    if (error) {
      if (!view) show(drawn, alert(error));
      return;
    }
    if (view) view.replace(svg);
    else {
      view = graphView(svg, {
        onNode: ({ index }) => choose("node", index),
        onEdge: ({ index }) => choose("edge", index),
        onMove: (places) => apply(change.withPlaces(definition, places)),
      });
      show(drawn, view.element);
    }
    mark();
  });

  const check = latest((abort) => api.post("/lint", {
    body: { workflow_definition: definition, workflow_configurations: configurations(), workflow_id: workflowId }, signal: abort,
  }), (answer, error) => {
    if (error) {
      show(summary, alert(error));
      return;
    }
    setFindings(answer.findings, answer.suppressed);
  });

  const drawSoon = debounced(draw, 200);
  const checkSoon = debounced(check, 350);

  // -- changes

  function apply(next, { isTyped = false, isUndo = false } = {}) {
    const at = Date.now();
    if (!isUndo && !(isTyped && at - lastChange < COALESCED && undone.length)) {
      undone.push(definition);
      if (undone.length > MOST_UNDONE) undone.shift();
    }
    lastChange = isTyped ? at : 0;
    undo.disabled = undone.length === 0;
    definition = next;
    if (document.activeElement !== text) writeJson();
    if (!isTyped) showPanel();
    drawSoon();
    checkSoon();
    changed();
  }

  function add(type, from = null) {
    apply(change.withNode(definition, specs.get(type), from));
    choose("node", definition.nodes.length - 1, { focus: true });
  }

  async function arrange() {
    const svg = await picture("layered", signal);
    view.replace(svg);
    apply(change.withPlaces(definition, view.places()));
  }

  async function remove() {
    const { kind, index } = chosen;
    const node = definition.nodes[index];
    const count = kind === "node" ? change.items(definition, "edges").filter(({ item }) => item.source === node.id || item.target === node.id).length : 0;
    if (count && !(await confirm(`Remove “${change.nameOf(node)}” and its ${count === 1 ? "edge" : `${count} edges`}?`, "Remove"))) return;
    choose(null, null);
    apply(kind === "node" ? change.withoutNode(definition, index) : change.withoutEdge(definition, index));
    drawn.querySelector(".graph-box")?.focus();
  }

  // -- what is chosen

  function showJson(isShown) {
    json.setAttribute("aria-pressed", String(isShown));
    showPanel();
    if (isShown) text.focus();
  }

  function choose(kind, index, { focus = true } = {}) {
    json.setAttribute("aria-pressed", "false");
    chosen = kind && { kind, index };
    view?.choose(kind, index);
    showPanel();
    if (kind && focus) panel.querySelector("h2").focus();
  }

  function showPanel() {
    const item = chosen && definition[`${chosen.kind}s`]?.[chosen.index];
    form = null;
    panel.classList.toggle("is-json", json.getAttribute("aria-pressed") === "true");
    if (panel.classList.contains("is-json")) {
      show(panel, h("h2", { tabindex: "-1" }, "Definition as JSON"), complaint, text);
      return;
    }
    if (!item || typeof item !== "object") {
      chosen = null;
      view?.choose(null, null);
      show(panel, h("h2", { tabindex: "-1" }, "Nothing chosen"),
        h("p", {}, "Choose a node or an edge in the drawing, with the mouse or with Tab and Enter, to change it."),
        h("p", {}, "A node is where the conversation is; an edge is a way on, taken when its condition holds."));
      return;
    }
    const isNode = chosen.kind === "node";
    const spec = isNode ? specs.get(item.type) : null;
    const set = (path, value) => {
      apply(change.withMember(definition, `${chosen.kind}s`, chosen.index, path, value), { isTyped: true });
      if (path.at(-1) === "name") heading.textContent = change.nameOf(definition.nodes[chosen.index]);
    };
    const heading = h("h2", { tabindex: "-1" }, isNode ? change.nameOf(item) : "Edge");
    form = isNode ? nodeForm(structuredClone(item), spec, set, choices) : edgeForm(structuredClone(item), definition, set);
    show(panel,
      heading,
      h("p", { class: "actions" }, badge(isNode ? spec?.display_name ?? String(item.type) : "Edge"),
        h("span", { class: "quiet" }, `id ${item.id ?? "missing"}`),
        button("Remove", remove, { kind: "small danger" }),
        button("Close", () => {
          const held = drawn.querySelector(".chosen");
          choose(null, null);
          held?.focus();
        }, { kind: "small" })),
      h("ul", { class: "plain-list findings here", "aria-label": "Findings" }),
      form,
      isNode && canLead(spec) && h("h3", {}, "Ways on"),
      isNode && canLead(spec) && waysOn(definition, item, {
        open: (index) => choose("edge", index),
        connect: (target) => {
          const connected = change.withEdge(definition, item.id, target);
          apply(connected.definition);
          choose("edge", connected.index);
        },
        addNode: (type) => add(type, chosen.index),
        targets: change.items(definition, "nodes").map(({ item: each }) => each)
          .filter((each) => typeof each.id === "string" && canBeLedTo(specs.get(each.type))),
        types: types.filter(canBeLedTo),
      }));
    showFindingsHere();
  }

  const canBeLedTo = (spec) => spec?.graph_constraints?.max_incoming !== 0;
  const canLead = (spec) => spec?.graph_constraints?.max_outgoing !== 0;

  // -- findings

  function setFindings(found, suppressed = 0) {
    findings = found;
    mark();
    const counts = Object.entries(SEVERITIES).map(([severity, [label, kind]]) => [
      found.filter((each) => each.severity === severity).length, label.toLowerCase(), kind,
    ]);
    show(summary,
      !counts[0][0] && badge("No errors", "good"),
      counts.filter(([count]) => count).map(([count, noun, kind]) => badge(`${count} ${noun}${count === 1 ? "" : "s"}`, kind)),
      suppressed > 0 && h("span", { class: "quiet" }, `${suppressed} left out`));
    show(list, found.map((finding) => h("li", {}, describe(finding, { isLink: true }))));
    showFindingsHere();
  }

  /** Have a rule say nothing about a node or an edge from now on. */
  function leaveOut({ kind, code }, { item, index }) {
    const codes = Array.isArray(item.data?.lint_ignore) ? item.data.lint_ignore : [];
    apply(change.withMember(definition, `${kind}s`, index, ["data", "lint_ignore"], [...codes, code]));
  }

  function placeOf(finding) {
    if (finding.kind === "workflow" || finding.id === null) return null;
    return change.items(definition, `${finding.kind}s`).findLast(({ item }) => String(item.id) === finding.id) ?? null;
  }

  function describe(finding, { isLink = false } = {}) {
    const place = isLink ? placeOf(finding) : null;
    const what = badge(...SEVERITIES[finding.severity]);
    const code = finding.code && [" ", h("span", { class: "code quiet" }, finding.code)];
    if (!place) return [what, " ", finding.field && finding.kind === "workflow" ? `${finding.field}: ` : "", finding.message, code];
    const named = finding.kind === "node" ? change.nameOf(place.item) : `Edge “${place.item.data?.label ?? place.item.id}”`;
    return [what, " ", button(named, () => choose(finding.kind, place.index), { kind: "small" }), " ", finding.message, code,
      finding.suppressible && [" ", button("Leave out", () => leaveOut(finding, place), {
        kind: "small", "aria-label": `Leave ${finding.code} out at ${named}`,
      })]];
  }

  function mark() {
    if (!view) return;
    view.unmark();
    for (const each of findings) if (each.id !== null) view.mark(each.kind, each.id, each.severity, each.message);
  }

  function showFindingsHere() {
    const here = panel.querySelector(".findings.here");
    if (!here) return;
    const id = String(definition[`${chosen.kind}s`][chosen.index].id);
    const rest = showFindings(form, findings.filter((each) => each.kind === chosen.kind && each.id === id));
    show(here, rest.map((finding) => h("li", {}, describe(finding))));
  }

  // -- the JSON

  function writeJson() {
    text.value = JSON.stringify(definition, null, 2);
    complaint.hidden = true;
  }

  const readJson = debounced(() => {
    try {
      const value = JSON.parse(text.value);
      if (!value || typeof value !== "object" || Array.isArray(value)) throw new Error("a definition is an object");
      complaint.hidden = true;
      if (JSON.stringify(value) !== JSON.stringify(definition)) apply(value);
    } catch (error) {
      complaint.textContent = `This isn't taken over yet: ${error.message}.`;
      complaint.hidden = false;
    }
  }, 400);
  text.addEventListener("input", readJson);

  writeJson();
  showPanel();
  await Promise.all([draw(), check()]);
  return {
    element: h("div", { class: "editor" }, h("div", { class: "stack" }, tools, drawn, h("div", {}, summary, list)), panel),
    definition: () => definition,
    check: checkSoon,
    /** Show what is stored now: nothing of it can be undone. */
    reset(stored) {
      definition = stored;
      undone.length = 0;
      undo.disabled = true;
      writeJson();
      // While something is typed, the form stays as it is.
      if (!panel.contains(document.activeElement)) showPanel();
      draw();
      check();
    },
    showErrors(errors) {
      choose(null, null);
      setFindings([...errors.map((each) => ({ ...each, severity: "error" })), ...findings.filter((each) => each.severity !== "error")]);
    },
  };
}

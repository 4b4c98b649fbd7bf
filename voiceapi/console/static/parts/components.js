// What the pages are made of. Buttons, forms, dialogs and notices come from here, too.

import { keepInQuery, queryNow } from "./address.js";
import { button } from "./controls.js";
import { h, show, uniqueId } from "./dom.js";
import { input } from "./forms.js";
import { notify } from "./notices.js";
import { words } from "./words.js";

export { button, copyable, debounced, download, link } from "./controls.js";
export { confirm, dialogForm, showDialog } from "./dialogs.js";
export { bytes, checkbox, field, fieldset, fileDrop, form, formWith, input, keyValues, numberIn, select, showErrors, textarea } from "./forms.js";
export { notify } from "./notices.js";
export { codesIn, words } from "./words.js";

/**
 * A table in a box that scrolls by itself. On narrow screens each row becomes a card, below what the table can be sorted
 * by.
 * `columns`: [heading, row => node or text, {number: true, sort: "name"}?]
 * `sorting`: {by, order, act}; `act` gets the name of the column and "asc" or "desc".
 */
export function table(caption, columns, rows, empty = "Nothing here yet.", sorting = null) {
  if (!rows.length) return typeof empty === "string" ? h("p", { class: "empty" }, empty) : empty;
  const head = ([heading, , options]) => {
    const isSorted = sorting && options?.sort && sorting.by === options.sort;
    const order = isSorted && sorting.order === "desc" ? "asc" : "desc";
    return h("th", {
      scope: "col",
      class: options?.number ? "number" : null,
      "aria-sort": isSorted ? (sorting.order === "desc" ? "descending" : "ascending") : null,
    }, sorting && options?.sort ? button(heading, () => sorting.act(options.sort, order), { kind: "sort" }) : heading || h("span", { class: "hidden" }, "Actions"));
  };
  const cell = ([heading, value, options], row) =>
    h("td", { class: options?.number ? "number" : null, data: { heading } }, value(row) ?? "");
  return h("div", { class: sorting ? "table-box cards sortable" : "table-box cards", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map(head))),
      h("tbody", {}, rows.map((row) => h("tr", {}, columns.map((column) => cell(column, row)))))));
}

/** The links to the pages of a list; `act` gets the number of the page. */
export function pager(page, pages, act) {
  if (pages <= 1) return null;
  return h("nav", { class: "pager", "aria-label": "Pages of the list" },
    button("Previous", () => act(page - 1), { disabled: page <= 1 }),
    pages > 5 ? h("label", {}, "Page ", jump(page, pages, act), ` of ${pages}`) : h("span", {}, `Page ${page} of ${pages}`),
    button("Next", () => act(page + 1), { disabled: page >= pages }));
}

/** Where the number of a page is typed, of a list too long to turn its pages one by one. */
function jump(page, pages, act) {
  const control = input({ type: "number", class: "page-number", min: "1", max: String(pages), value: page });
  control.addEventListener("change", async () => {
    const wanted = Math.min(Math.max(Math.round(Number(control.value)) || page, 1), pages);
    control.value = wanted;
    try {
      if (wanted !== page) await act(wanted);
    } catch (error) {
      if (error.name !== "AbortError") notify(error.message, "error");
    }
  });
  return control;
}

/** A state in a word. `kind`: good, bad, busy, or nothing. */
export function badge(text, kind = "") {
  return h("span", { class: `badge ${kind}` }, text);
}

// The kinds of the badges of states and results: of runs, campaigns, contacts, agents, chats, documents and deliveries.
const STATES = {
  active: "good", published: "good", ready: "good", succeeded: "good",
  running: "busy", dialing: "busy", in_progress: "busy", processing: "busy", syncing: "busy", retry: "busy", draft: "busy",
  paused: "busy", unknown: "busy", pending: "busy",
  failed: "bad", error: "bad", dead_letter: "bad", pipeline_error: "bad", system_connect_error: "bad", unexpected_error: "bad",
};

/** The badge of a state or a result, in plain words. */
export function stateBadge(state) {
  return state ? badge(words(state), STATES[state] ?? "") : "";
}

/** How far something is, with the numbers beside it. */
export function progress(label, value, most) {
  const id = uniqueId("progress");
  return h("div", { class: "progress" },
    h("span", { id }, label),
    h("progress", { "aria-labelledby": id, max: String(Math.max(most, 1)), value: Math.min(value, most) }),
    h("span", { class: "number" }, `${value} of ${most}`));
}

export function section(title, ...children) {
  return h("section", { class: "card" }, h("h2", {}, title), children);
}

/** What a list shows that has nothing yet: a sentence, and what to do next (links or buttons). */
export function emptyState(text, ...next) {
  return h("div", { class: "empty-state" }, h("p", {}, text), next.length ? h("div", { class: "actions" }, next) : null);
}

/** A sentence, in which what stands between backticks is code. */
export function coded(text) {
  return text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));
}

/** Names and values. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** Links to what a page is part of: [[text, path], ...]. */
export function trail(pairs) {
  return h("nav", { class: "trail", "aria-label": "Where this page belongs" },
    pairs.map(([text, path]) => h("a", { href: `#${path}` }, text)));
}

/**
 * Tabs. `views`: [[text, view], ...]; `view` makes the content when its tab is opened, each time. `chosen` gets the number
 * of the tab that was opened. `element.open(n)` opens one. `name`: the open tab is kept in the address under this name, as
 * its text in small letters.
 */
export function tabs(label, views, { at = 0, chosen = null, name = null } = {}) {
  const slugs = views.map(([text]) => text.toLowerCase().replaceAll(/\W+/g, "-"));
  const kept = name ? slugs.indexOf(queryNow().get(name)) : -1;
  const prefix = uniqueId("tab");
  const panel = h("div", { role: "tabpanel", id: `${prefix}-panel`, tabindex: "0" });
  const heads = views.map(([text], index) =>
    h("button", { type: "button", role: "tab", class: "tab", id: `${prefix}-${index}`, "aria-controls": panel.id,
      on: { click: () => open(index) } }, text));
  const open = (index) => {
    heads.forEach((head, each) => {
      head.setAttribute("aria-selected", String(each === index));
      head.tabIndex = each === index ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", heads[index].id);
    if (name) keepInQuery({ [name]: index === at ? "" : slugs[index] });
    show(panel, views[index][1]());
    chosen?.(index);
  };
  const keys = { ArrowRight: (n) => n + 1, ArrowLeft: (n) => n - 1, Home: () => 0, End: () => heads.length - 1 };
  const list = h("div", { role: "tablist", class: "tabs", "aria-label": label }, heads);
  list.addEventListener("keydown", (event) => {
    const step = keys[event.key];
    if (!step) return;
    event.preventDefault();
    const next = (step(heads.indexOf(document.activeElement)) + heads.length) % heads.length;
    heads[next].focus();
    open(next);
  });
  const element = h("div", {}, list, panel);
  element.open = open;
  open(kept < 0 ? at : kept);
  return element;
}

/** What is shown only when it is asked for. */
export function details(summary, ...children) {
  return h("details", {}, h("summary", {}, summary), children);
}

/** A value as JSON. */
export function code(value, label = "JSON") {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return h("pre", { class: "code-box", tabindex: "0", role: "region", "aria-label": label }, text);
}

/** An instant in the reader's own time zone, with the exact one as its title. */
export function instant(text) {
  if (!text) return "";
  return h("time", { datetime: text, title: text }, new Date(text).toLocaleString());
}

/** Seconds as 1:05 or 2:10:00, or as 0.8 s below ten. */
export function seconds(value) {
  if (value === null || value === undefined) return "";
  if (value < 9.95) return `${Math.round(value * 10) / 10} s`;
  const whole = Math.round(value);
  const two = (number) => String(number).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

export function alert(error) {
  return h("p", { class: "form-alert", role: "alert" }, error.message ?? String(error));
}

/** What needs attention, but isn't an error. */
export function callout(...children) {
  return h("div", { class: "callout" }, children);
}

/**
 * What stands in the place of content that isn't there yet, as high as so many rows. It says nothing to screen readers,
 * who hear once of a page that it loads.
 */
export function skeleton(rows = 3) {
  return h("div", { class: "skeleton loading", "aria-hidden": "true" }, Array.from({ length: rows }, () => h("div")));
}

/** Show what a promise gives, or its error, and a skeleton of so many rows until then. */
export async function showWhenReady(parent, promise, view, { rows = 3 } = {}) {
  show(parent, skeleton(rows));
  parent.setAttribute("aria-busy", "true");
  try {
    show(parent, view(await promise));
  } catch (error) {
    if (error.name === "AbortError") return;
    show(parent, alert(error));
  }
  parent.removeAttribute("aria-busy");
}

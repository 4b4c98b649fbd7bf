// The calls and chats of the organization, with every filter and order, kept in the address.

import { api } from "../app/api.js";
import { every, keepQuery } from "../app/router.js";
import {
  badge, button, download, emptyState, formWith, instant, link, pager, seconds, showErrors, skeleton, stateBadge, table, words,
} from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { atFields, filtersOf, runFilters, valuesIn } from "./calls/run-filters.js";

const LIMIT = 25;
const LATELY = 5000;
const ORDERS = ["created_at", "duration", "id", "name"];

/** Who was talked to, as far as it is known: the name and the number. */
function person(run) {
  const { first_name: first, last_name: last, name } = run.initial_context ?? {};
  const called = [name, [first, last].filter(Boolean).join(" ")].find((each) => typeof each === "string" && each.trim());
  const number = run.call_type === "inbound" ? run.caller_number : run.called_number;
  return [called, run.mode !== "textchat" && number].filter(Boolean).join(", ") || "Somebody without a name";
}

const kind = (run) => (run.mode === "textchat" ? "Chat" : [run.call_type === "inbound" ? "Call in" : "Call out", h("span", { class: "quiet" }, `, ${words(run.mode)}`)]);

export default async function runs({ root, query, signal }) {
  const values = valuesIn(query);
  let sort = { by: ORDERS.find((name) => name === query.get("sort")) ?? ORDERS[0], order: query.get("order") === "asc" ? "asc" : "desc" };
  let page = Math.max(1, Number.parseInt(query.get("page"), 10) || 1);
  const place = h("div", {}, skeleton(10));
  const summary = h("p", { class: "quiet", role: "status" });
  const replayed = h("p", { class: "actions" });
  let before = "";
  let asked = 0; // how often the list was asked for
  let answered = 0;
  let isRefused = false; // the filters, as the form says

  async function load({ anew = true } = {}) {
    const number = ++asked;
    keepQuery({
      ...values, sort: sort.by === ORDERS[0] ? "" : sort.by, order: sort.order === "desc" ? "" : "asc", page: page > 1 ? page : "",
    });
    const chosen = filtersOf(values);
    let answer;
    try {
      answer = await api.get("/organizations/usage/runs", {
        query: { page, limit: LIMIT, sort_by: sort.by, sort_order: sort.order, filters: chosen }, signal,
      });
    } catch (error) {
      isRefused = error.status === 422;
      throw isRefused ? atFields(error, values) : error;
    } finally {
      answered += 1;
    }
    isRefused = false;
    if (number !== asked) return; // another page or filter was asked for meanwhile
    if (page > 1 && page > answer.total_pages) {
      await turn(Math.max(1, answer.total_pages));
      return;
    }
    const text = JSON.stringify(answer);
    if (!anew && text === before) return;
    before = text;
    show(summary, `${answer.total_count} ${answer.total_count === 1 ? "call or chat" : "calls and chats"} ${chosen === null ? "since the beginning" : "with these filters"}`);
    show(replayed, values.workflow && answer.total_count > 0 && link("Replay the latest on the draft", `/agents/${values.workflow}/replay`, { class: "button small" }));
    show(place, view(answer.runs, chosen !== null), pager(answer.page, answer.total_pages, turn));
  }

  const turn = (to) => {
    page = to;
    return load();
  };
  const view = (found, isFiltered) => table("Calls and chats", [
    ["With", (run) => link(person(run), `/agents/${run.workflow_id}/runs/${run.id}`)],
    ["Agent", (run) => link(run.workflow_name, `/agents/${run.workflow_id}`)],
    ["Kind", (run) => [kind(run), run.is_test && [" ", badge("test")]]],
    ["When", (run) => instant(run.created_at), { sort: "created_at" }],
    ["Length", (run) => (run.is_completed && run.mode !== "textchat" ? seconds(run.call_duration_seconds) : ""), { sort: "duration", number: true }],
    ["Result", (run) => (run.is_completed ? run.disposition && stateBadge(run.disposition) : badge("going on", "busy"))],
    ["Our number", (run) => (run.mode === "textchat" ? "" : run.call_type === "inbound" ? run.called_number : run.caller_number)],
    ["Name", (run) => h("span", { class: "quiet" }, run.name), { sort: "name" }],
    ["No.", (run) => String(run.id), { sort: "id", number: true }],
  ], found, isFiltered
    ? emptyState("No call or chat meets these filters.", button("Drop the filters", clear))
    : emptyState("Nobody has talked to an agent yet.", link("Go to the agents", "/agents", { class: "button" })),
  { by: sort.by, order: sort.order, act: (by, order) => {
    sort = { by, order };
    page = 1;
    return load();
  } });

  // -- the filters

  const filters = runFilters(values, {
    agents: api.get("/workflow/fetch", { signal }),
    campaigns: api.get("/campaign/", { signal }).then((answer) => answer.campaigns),
    codes: api.get("/organizations/disposition-codes", { signal }).then((answer) => answer.codes),
  });
  const apply = async () => {
    filters.read();
    page = 1;
    await load();
  };
  async function clear() {
    filters.clear();
    await apply();
  }
  const filterForm = formWith({ submit: "Show", act: apply, beside: [
    button("Drop the filters", clear),
    button("Download those that are over, as CSV", async () => {
      const text = await api.text("/organizations/usage/runs/report", { query: { filters: filtersOf(values) }, signal });
      download("calls.csv", text, "text/csv");
    }),
  ] }, filters.element);
  const isFiltered = filtersOf(values) !== null;
  show(root,
    h("details", { class: "card", open: isFiltered }, h("summary", {}, "Filters and download"), filterForm),
    h("section", { class: "card", "aria-label": "List of calls and chats" }, summary, replayed, place));
  await Promise.all([filters.whole, load().catch((error) => {
    if (!isRefused) throw error;
    show(place, h("p", { class: "empty" }, "These filters can't be used as they are."));
    showErrors(filterForm, error);
  })]);
  every(LATELY, signal, async () => {
    if (!isRefused && answered === asked) await load({ anew: false });
  }, { later: true });
}

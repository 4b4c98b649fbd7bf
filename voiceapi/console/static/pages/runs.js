// The runs of the organization, with every filter and order, kept in the address.

import { api } from "../app/api.js";
import { every, keepQuery } from "../app/router.js";
import {
  badge, button, download, emptyState, formWith, instant, link, pager, seconds, showErrors, stateBadge, table,
} from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { atFields, filtersOf, runFilters, valuesIn } from "./calls/run-filters.js";

const LIMIT = 25;
const LATELY = 5000;
const ORDERS = ["created_at", "duration", "id", "name"];

export default async function runs({ root, query, signal, title }) {
  title("Runs");
  const [agents, campaigns, codes] = await Promise.all([
    api.get("/workflow/fetch", { signal }),
    api.get("/campaign/", { signal }).then((answer) => answer.campaigns),
    api.get("/organizations/disposition-codes", { signal }).then((answer) => answer.codes),
  ]);
  const values = valuesIn(query);
  let sort = { by: ORDERS.find((name) => name === query.get("sort")) ?? ORDERS[0], order: query.get("order") === "asc" ? "asc" : "desc" };
  let page = Math.max(1, Number.parseInt(query.get("page"), 10) || 1);
  const place = h("div");
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
    show(summary, `${answer.total_count} ${answer.total_count === 1 ? "run" : "runs"}`);
    show(replayed, values.workflow && answer.total_count > 0 && link("Replay the latest on the draft", `/agents/${values.workflow}/replay`, { class: "button small" }));
    show(place, view(answer.runs, chosen !== null), pager(answer.page, answer.total_pages, turn));
  }

  const turn = (to) => {
    page = to;
    return load();
  };
  const view = (found, isFiltered) => table("Runs", [
    ["Run", (run) => link(run.name, `/agents/${run.workflow_id}/runs/${run.id}`), { sort: "name" }],
    ["No.", (run) => String(run.id), { sort: "id", number: true }],
    ["When", (run) => instant(run.created_at), { sort: "created_at" }],
    ["Agent", (run) => link(run.workflow_name, `/agents/${run.workflow_id}`)],
    ["Kind", (run) => [run.mode === "textchat" ? "Chat" : `${run.call_type === "inbound" ? "In" : "Out"}, ${run.mode}`, run.is_test && [" ", badge("test")]]],
    ["From", (run) => run.caller_number],
    ["To", (run) => run.called_number],
    ["Duration", (run) => (run.is_completed ? seconds(run.call_duration_seconds) : ""), { sort: "duration", number: true }],
    ["Came out", (run) => (run.is_completed ? run.disposition && stateBadge(run.disposition) : badge("in progress", "busy"))],
  ], found, isFiltered
    ? emptyState("No run meets these filters.", button("Drop the filters", clear))
    : emptyState("Nobody has talked to an agent yet.", link("Go to the agents", "/agents", { class: "button" })),
  { by: sort.by, order: sort.order, act: (by, order) => {
    sort = { by, order };
    page = 1;
    return load();
  } });

  // -- the filters

  const filters = runFilters(values, { agents, campaigns, codes });
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
    button("Download those that have ended as CSV", async () => {
      const text = await api.text("/organizations/usage/runs/report", { query: { filters: filtersOf(values) }, signal });
      download("runs.csv", text, "text/csv");
    }),
  ] }, filters.element);
  const isFiltered = filtersOf(values) !== null;
  show(root,
    h("details", { class: "card", open: isFiltered }, h("summary", {}, "Filters and download"), filterForm),
    h("section", { class: "card", "aria-label": "List of runs" }, summary, replayed, place));
  await load().catch((error) => {
    if (!isRefused) throw error;
    show(place, h("p", { class: "empty" }, "These filters can't be used as they are."));
    showErrors(filterForm, error);
  });
  every(LATELY, signal, async () => {
    if (!isRefused && answered === asked) await load({ anew: false });
  }, { later: true });
}

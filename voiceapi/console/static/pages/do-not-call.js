// The do-not-call list: numbers that are never called, but to put a caller through.

import { ApiError, api } from "../app/api.js";
import { keepInQuery } from "../parts/address.js";
import {
  alert, button, callout, confirm, field, fileDrop, formWith, input, instant, notify, pager, section, table, textarea,
} from "../parts/components.js";
import { h, show } from "../parts/dom.js";

const LIMIT = 50;

export default async function doNotCall({ root, query, signal, title }) {
  const list = h("div");
  let page = Number(query.get("page")) || 1;
  const load = async () => {
    const found = await api.get("/do-not-call", { query: { page, limit: LIMIT }, signal });
    const turn = async (to) => {
      page = to;
      keepInQuery({ page: page > 1 ? page : "" });
      await load();
    };
    show(list,
      found.total_count ? h("p", { class: "quiet" }, `${found.total_count} ${found.total_count === 1 ? "number is" : "numbers are"} on the list now, the newest first.`) : null,
      table("Numbers not to call", [
        ["Number", (row) => row.phone_number],
        ["Why", (row) => row.reason],
        ["Since", (row) => instant(row.created_at)],
        ["Actions", (row) => button("Remove", () => remove(row), { kind: "small danger", "aria-label": `Remove ${row.phone_number}` })],
      ], found.phone_numbers, "The list is empty. Add numbers above. If somebody asks an agent not to be called any more, and the result of the call says so, the number is added by itself."),
      pager(found.page, found.total_pages, turn));
  };
  const remove = async (row) => {
    if (!(await confirm(`Take ${row.phone_number} off the list? It may be called again.`, "Remove"))) return;
    await api.delete(`/do-not-call/${encodeURIComponent(row.phone_number)}`, { signal });
    notify("The number may be called again.");
    await load();
  };
  title("Do-not-call list", [["Settings", "/settings"]]);
  show(root,
    h("p", {}, "No campaign calls these numbers, and single calls to them are refused. Putting a caller through to one of them still works."),
    h("div", { class: "columns" }, addNumbers(signal, load), addFile(signal, load)),
    section("Numbers", list));
  await load();
}

const told = (added) => `${added.added} ${added.added === 1 ? "number" : "numbers"} added, ${added.already_listed} were on the list already.`;

function addNumbers(signal, load) {
  const numbers = textarea("", { rows: "4", placeholder: "+12025550123" });
  const reason = input({ maxlength: "255" });
  const add = async () => {
    const given = numbers.value.split(/[\n,;]+/).map((each) => each.trim()).filter(Boolean);
    const body = { phone_numbers: given, reason: reason.value.trim() || null };
    notify(told(await api.post("/do-not-call", { body, signal }).catch((error) => {
      throw named(error, given);
    })));
    numbers.value = "";
    await load();
  };
  return section("Add numbers", formWith({ submit: "Add", act: add, saves: signal },
    field("Numbers", numbers, { name: "phone_numbers", required: true, help: "One on each line, with + and country code, such as +12025550123." }),
    field("Why", reason, { name: "reason", help: "For yourself." })));
}

/** The error with the refused numbers themselves in place of their positions. */
function named(error, given) {
  const items = error.items?.map((item) => {
    const [, field, at] = item.loc;
    return field === "phone_numbers" && given[at] ? { ...item, loc: ["body", field], msg: `${given[at]}: ${item.msg}` } : item;
  });
  return items?.length ? new ApiError(error.status, items) : error;
}

function addFile(signal, load) {
  const result = h("div", { class: "result", "aria-live": "polite" });
  const column = input({ maxlength: "255", placeholder: "phone_number" });
  const drop = fileDrop("Drop a spreadsheet saved as CSV here, or choose it. It needs a column with the numbers; a column “reason” is kept, too.", async (file) => {
    show(result, h("p", { class: "loading" }, "Adding…"));
    try {
      const response = await api.send("POST", "/do-not-call/csv", { query: { phone_number_column: column.value.trim() }, form: file, headers: { "Content-Type": "text/csv" }, signal });
      const added = await response.json();
      show(result, h("p", {}, told(added)), added.refused_count ? [
        callout(`${added.refused_count} ${added.refused_count === 1 ? "row wasn't" : "rows weren't"} taken.`),
        table("Rows that weren't taken", [
          ["Row", (row) => String(row.row), { number: true }],
          ["Why", (row) => row.reason],
        ], added.refused.slice(0, 100)),
      ] : null);
      await load();
    } catch (error) {
      if (error.name !== "AbortError") show(result, alert(error));
    }
  }, { accept: ".csv,text/csv,text/plain" });
  return section("Add a file", field("Name of the column with the numbers", column, { help: "Empty: phone_number." }), drop, result);
}

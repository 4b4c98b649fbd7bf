// The knowledge base: documents that agents look things up in, and a search as an agent does it.

import { api } from "../app/api.js";
import { every } from "../app/router.js";
import { keepInQuery } from "../parts/address.js";
import {
  alert, bytes, button, confirm, details, field, fileDrop, form, input, instant, link, notify, section, select, stateBadge, table,
} from "../parts/components.js";
import { h, show } from "../parts/dom.js";

const LIMIT = 50;
// A document of another tab or program may be read meanwhile.
const POLL = 10_000;

export default async function documents({ root, query, signal, title }) {
  const list = h("div");
  let offset = Math.max(0, Number(query.get("from")) || 0);
  let shown = null;
  const load = async () => {
    const found = (await api.get("/knowledge-base/documents", { query: { limit: LIMIT, offset }, signal })).documents;
    const text = JSON.stringify([offset, found]);
    if (text === shown) return;
    shown = text;
    show(list, view(found));
  };
  const remove = async (row) => {
    if (!(await confirm(`Delete “${row.filename}”? Agents no longer find anything in it.`, "Delete"))) return;
    await api.delete(`/knowledge-base/documents/${row.document_uuid}`, { signal });
    notify("The document is deleted.");
    await load();
  };
  const turn = (by) => async () => {
    offset = Math.max(0, offset + by);
    keepInQuery({ from: offset || "" });
    await load();
  };
  const view = (found) => [
    table("Documents", [
      ["Name", (row) => row.filename],
      ["State", (row) => [stateBadge(row.processing_status === "completed" ? "ready" : row.processing_status), " ", row.processing_error]],
      ["An agent gets", (row) => (row.retrieval_mode === "full_document" ? "all of it" : "passages that fit")],
      ["Passages", (row) => String(row.total_chunks), { number: true }],
      ["Size", (row) => bytes(row.file_size_bytes), { number: true }],
      ["Uploaded", (row) => instant(row.created_at)],
      ["Actions", (row) => button("Delete", () => remove(row), { kind: "small danger", "aria-label": `Delete ${row.filename}` })],
    ], found, "There is no document yet. Upload one above."),
    offset || found.length === LIMIT ? h("nav", { class: "pager", "aria-label": "Pages of the list" },
      button("Previous", turn(-LIMIT), { disabled: offset === 0 }),
      h("span", {}, `From ${offset + 1}`),
      button("Next", turn(LIMIT), { disabled: found.length < LIMIT })) : null,
  ];
  await load();
  title("Documents");
  show(root, upload(signal, load), section("Documents", list, h("p", { class: "quiet" }, "An agent looks things up in a document once a step of it has the document: ",
    link("open an agent", "/agents"), ", choose a step, and tick the document there.")), search(signal));
  every(POLL, signal, load, { later: true });
}

function upload(signal, load) {
  const mode = select([["chunked", "The passages that fit the question"], ["full_document", "All of the document, for short ones"]], "chunked");
  const state = h("div", { class: "result", "aria-live": "polite" });
  const drop = fileDrop("Drop a text, Markdown, HTML, PDF or CSV file of up to 5 MB here, or choose it.", async (file) => {
    show(state, h("p", { class: "loading" }, `Reading ${file.name}…`));
    const content = new FormData();
    content.set("file", file, file.name);
    content.set("retrieval_mode", mode.value);
    try {
      const made = await api.post("/knowledge-base/documents", { form: content, signal });
      show(state, made.processing_error
        ? alert(new Error(`${made.filename} can't be used: ${made.processing_error}`))
        : h("p", {}, `${made.filename} is ready, with ${made.total_chunks} ${made.total_chunks === 1 ? "passage" : "passages"}.`));
      await load();
    } catch (error) {
      if (error.name !== "AbortError") show(state, alert(error));
    }
  });
  return section("Add a document",
    h("p", { class: "quiet" }, "Agents answer questions from documents, such as a price list or opening hours."), field("An agent gets", mode, { name: "retrieval_mode" }), drop, state);
}

function search(signal) {
  const query = input({ maxlength: "1000", placeholder: "When do you open?" });
  const result = h("div", { class: "result", "aria-live": "polite" });
  const run = async () => {
    const found = await api.post("/knowledge-base/search", { body: { query: query.value, limit: 5 }, signal });
    show(result, found.chunks.length ? h("ol", { class: "results" }, found.chunks.map((each) => h("li", {},
      h("p", { class: "quiet" }, `${each.filename}, passage ${each.chunk_index + 1}, ${Math.round(100 * each.similarity)} % alike`),
      each.text.length > 600 ? [h("p", {}, `${each.text.slice(0, 600)}…`), details("All of it", h("pre", {}, each.text))] : h("pre", {}, each.text),
    ))) : h("p", { class: "empty" }, "No document says anything about that."));
  };
  return section("Try what an agent finds", form("Search", run, field("A caller's question", query, { name: "query", required: true })), result);
}

// A text chat with an agent, typed or by voice: each turn with its reasons, rewind, silence, end.

import { api, ApiError } from "./api.js";
import { button, link, notify, stateBadge } from "./components.js";
import { h, show } from "./dom.js";
import { placeOf, showList, turnOfChat, turnView } from "./turns.js";
import { canListen, canSpeak, listen, speak } from "./voice.js";

/**
 * `readContext()` gives the initial variables of a new chat; `light(node, edge)` shows where the conversation is;
 * `variables(found)` what is known; `changed(chat)` is called with each state of the chat. `tell()` of the panel has
 * them called again.
 */
export function chatPanel({ workflow, language, signal, readContext, light, variables, changed }) {
  const path = `/workflow/${workflow.id}/text-chat/sessions`;
  const talk = h("div", { class: "conversation", role: "log", "aria-label": "Conversation" });
  const state = h("p", { class: "actions", role: "status" });
  const text = h("input", { type: "text", autocomplete: "off", "aria-label": "What you say", placeholder: "What you say" });
  const say = h("form", { class: "say", novalidate: true }, text, h("button", { type: "submit", class: "button primary" }, "Say it"));
  const tools = h("div", { class: "actions" });
  let chat = null;
  let voice = null; // aborted when the voice is switched off
  let busy = false;

  say.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!text.value || busy) return;
    const said = text.value;
    text.value = "";
    send(said).catch((error) => {
      if (error.name === "AbortError") return;
      text.value = said;
      notify(error.message, "error");
    });
  });

  const isOver = () => chat === null || chat.is_completed;
  const turns = () => chat.session_data.turns;
  const isRewound = () => Boolean(chat?.session_data.cursor_turn_id);

  /** The turns that count: after going back, those up to there. */
  const kept = () => turns().slice(0, isRewound() ? turns().findIndex((turn) => turn.id === chat.session_data.cursor_turn_id) + 1 : undefined);

  const url = (what) => `${path}/${chat.workflow_run_id}${what}`;

  /** Send a change and show the chat that comes back; when another tab was quicker, that of now. */
  async function change(what, body) {
    busy = true;
    talk.setAttribute("aria-busy", "true");
    try {
      accept(await api.post(url(what), { body: { ...body, expected_revision: chat.revision }, signal }));
    } catch (error) {
      if (!(error instanceof ApiError) || ![400, 409].includes(error.status)) throw error;
      accept(await api.get(url(""), { signal }));
      throw new Error(error.status === 409 ? "This chat was changed elsewhere, and is shown as it is now. Say it again." : error.message);
    } finally {
      busy = false;
      talk.removeAttribute("aria-busy");
    }
  }

  async function send(said) {
    const waiting = h("article", { class: "turn" }, h("p", { class: "said caller" }, said.trim() || h("em", {}, "silence")),
      h("p", { class: "quiet" }, "The agent thinks…"));
    talk.append(waiting);
    waiting.scrollIntoView({ block: "nearest" });
    try {
      await change("/messages", { text: said });
    } finally {
      waiting.remove();
    }
  }

  const goBack = (turn, number) => button("Go back to here", () => change("/rewind", { cursor_turn_id: turn.id }),
    { kind: "small go-back", "aria-label": `Go back to ${number ? `turn ${number}` : "the opening"}` });

  function accept(now) {
    chat = now;
    const at = kept().length;
    showList(talk, turns().map((turn, number) => ({ turn, isSetAside: number >= at })), ({ turn, isSetAside }, number) =>
      turnView(turnOfChat(turn, number), { isSetAside, actions: goBack(turn, number) }));
    turns().forEach((_, number) => {
      talk.children[number].querySelector(".go-back").hidden = isOver() || number >= at || number === turns().length - 1;
    });
    showState();
    tell();
    talk.lastElementChild?.scrollIntoView({ block: "nearest" });
  }

  /** Tell the page where the conversation is, and what it knows. */
  function tell() {
    if (!chat) return;
    changed(chat);
    light(...(kept().map((turn) => placeOf(turn.events)).filter(([node]) => node).at(-1) ?? [null, null]));
    variables(kept().map((turn) => turn.checkpoint_after_turn?.gathered_context).filter(Boolean).at(-1) ?? chat.gathered_context ?? {});
  }

  function showState() {
    const isHere = say.contains(document.activeElement);
    say.hidden = isOver();
    show(state,
      chat && stateBadge(chat.is_completed ? chat.gathered_context?.call_disposition ?? "ended" : isRewound() ? "rewound" : "running"),
      chat && link(`Run ${chat.workflow_run_id}`, `/agents/${workflow.id}/runs/${chat.workflow_run_id}`),
      chat?.session_data.discarded_future.length > 0 && h("span", { class: "quiet" }, `${chat.session_data.discarded_future.length} set aside`));
    show(tools,
      isOver() && button(chat ? "Start again" : "Start", open, { kind: "primary" }),
      isRewound() && button("Undo going back", () => change("/rewind", { cursor_turn_id: null })),
      !isOver() && button("Stay silent", () => send(" ")),
      !isOver() && canListen && button(voice ? "Stop the voice" : "Talk by voice", () => (voice ? voice.abort() : talkByVoice()), { "aria-pressed": String(Boolean(voice)) }),
      !isOver() && button("End", () => change("/end", {})),
      !isOver() && button("Start again", open));
    if (isHere && isOver()) tools.querySelector("button").focus({ preventScroll: true });
  }

  async function open() {
    voice?.abort();
    if (!isOver()) await change("/end", {}).catch(() => {});
    busy = true;
    try {
      accept(await api.post(path, { body: { initial_context: readContext() }, signal }));
    } finally {
      busy = false;
    }
    text.focus();
  }

  /** Speak the agent's words and listen in turn, until somebody stops it or the chat is over. */
  function talkByVoice() {
    voice = new AbortController();
    const { signal: off } = voice;
    signal.addEventListener("abort", () => voice?.abort(), { once: true });
    conversation(off).catch((error) => error.name !== "AbortError" && notify(error.message, "error")).finally(() => {
      voice = null;
      text.placeholder = "What you say";
      if (!signal.aborted) showState();
    });
    showState();
  }

  async function conversation(off) {
    const lastWords = () => turns().at(-1)?.assistant_message?.text ?? "";
    if (canSpeak) await speak(lastWords(), language, off);
    while (!off.aborted && !isOver()) {
      text.placeholder = "Listening…";
      const heard = await listen(language, off, (part) => (text.value = part));
      text.value = "";
      if (off.aborted || !heard) return;
      await send(heard);
      if (canSpeak) await speak(lastWords(), language, off);
    }
  }

  showState();
  const element = h("div", { class: "stack" },
    h("p", { class: "quiet" }, "The draft answers, if there is one; then it is a test, whose webhooks are not sent by themselves. What is said is kept as a run."), state, talk, say, tools);
  return {
    element,
    /** Go on with a chat that is there already. */
    async load(run) {
      accept(await api.get(`${path}/${encodeURIComponent(run)}`, { signal }));
    },
    tell,
    stop: () => voice?.abort(),
  };
}

// A text chat with an agent, typed or by voice: words as they come, each turn with its reasons, rewind, silence, end.

import { api, ApiError } from "../../app/api.js";
import { every } from "../../app/router.js";
import { placeOf, turnOfChat } from "../../app/turns.js";
import { alert, button, link, notify, stateBadge } from "../../parts/components.js";
import { h, show } from "../../parts/dom.js";
import { showList, spoken, turnView } from "./turns.js";
import { canListen, listen, sentences, speak } from "./voice.js";

const UNTIL_ANSWERED = 1000;
const PLACEHOLDER = "Type what you would say on the phone";

/**
 * `readContext()` gives what is known before a new chat; `light(node, edge)` shows where the conversation is;
 * `variables(found)` what is known; `changed(chat)` is called with each state of the chat. `tell()` of the panel has
 * them called again. `before()` is waited for before anything is said; nothing is if it is false. `again`: what was said
 * last can be said again, to what was changed meanwhile; in a new chat unless `again.isCurrent()`, because a chat keeps its
 * version.
 */
export function chatPanel({ workflow, language, signal, readContext, light, variables, changed, before = () => true, again = null }) {
  const path = `/workflow/${workflow.id}/text-chat/sessions`;
  const talk = h("div", { class: "conversation", role: "log", "aria-label": "Conversation", "aria-live": "off" });
  const heard = h("div", { class: "hidden", "aria-live": "polite" }); // what the agent says, for screen readers: whole sentences
  const state = h("p", { class: "actions", role: "status" });
  const text = h("input", { type: "text", autocomplete: "off", "aria-label": "What you say", placeholder: PLACEHOLDER });
  const say = h("form", { class: "say", novalidate: true }, text, h("button", { type: "submit", class: "button primary" }, "Say it"));
  const tools = h("div", { class: "actions" });
  const hint = h("p", {}, "Press Start, and the agent says its first words. Then you answer.");
  let chat = null;
  let voice = null; // aborted when the voice is switched off
  let busy = 0; // changes that aren't answered yet

  say.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!text.value || busy) return;
    const said = text.value;
    text.value = "";
    send(said);
  });

  const isOver = () => chat === null || chat.is_completed;
  const turns = () => chat.session_data.turns;
  const lastWords = () => turns().at(-1)?.assistant_message?.text ?? "";
  const isRewound = () => Boolean(chat?.session_data.cursor_turn_id);

  /** The turns that count: after going back, those up to there. */
  const kept = () => turns().slice(0, isRewound() ? turns().findIndex((turn) => turn.id === chat.session_data.cursor_turn_id) + 1 : undefined);

  const url = (what) => `${path}/${chat.workflow_run_id}${what}`;

  /** Show the chat that `answerOf` gives for a body; when another tab was quicker, or the connection broke, that of now. */
  async function change(answerOf, { isLast = false } = {}) {
    if (busy && !isLast) throw new Error("The agent is still answering.");
    const { workflow_run_id: id, revision } = chat;
    const body = busy ? {} : { expected_revision: revision };
    busy += 1;
    try {
      const now = await answerOf(body);
      if (chat.workflow_run_id === id) accept(now);
    } catch (error) {
      if (!(error instanceof ApiError) || ![0, 400, 409].includes(error.status)) throw error;
      if (chat.workflow_run_id === id) await load(id).catch(() => {});
      throw error.detail?.actual_revision ? new Error("This chat was changed elsewhere, and is shown as it is now.") : error;
    } finally {
      busy -= 1;
    }
  }

  const rewind = (id) => change((body) => api.post(url("/rewind"), { body: { ...body, cursor_turn_id: id }, signal }));

  /** End the chat, after the answer that is still being written. */
  function end() {
    voice?.abort();
    if (busy) notify("The chat ends after this answer.");
    return change((body) => api.post(url("/end"), { body, signal }), { isLast: true });
  }

  /** Say something and show the answer as it comes; with `off`, speak it, too, until then. False if that failed. */
  async function send(said, off = null) {
    if (busy) throw new Error("The agent is still answering.");
    if (!(await before())) {
      text.value ||= said.trim();
      return false;
    }
    const thinks = h("p", { class: "quiet" }, "The agent thinks…");
    const turn = h("article", { class: "turn" }, spoken({ who: "caller", text: said }), thinks);
    const isSeen = () => turn.getBoundingClientRect().bottom <= window.innerHeight;
    const aloud = [];
    let isStored = false;
    let answer = null;
    let rest = "";
    const give = (sentence) => {
      heard.append(h("p", {}, sentence));
      if (off) aloud.push(speak(sentence, language, off));
      rest = rest.slice(sentence.length);
    };
    const answerOf = async (body) => {
      for await (const [name, value] of api.events(url("/messages/stream"), { body: { ...body, text: said }, signal })) {
        isStored = true;
        if (name === "turn") {
          if (rest) give(rest);
          return value;
        }
        const wasSeen = isSeen();
        if (answer) answer.append(value.text);
        else if (value.text) thinks.replaceWith((answer = spoken({ who: "agent", text: value.text })));
        if (wasSeen && !isSeen()) turn.scrollIntoView({ block: "end" });
        rest += value.text;
        sentences(rest).forEach(give);
      }
    };
    show(heard);
    talk.append(turn);
    turn.scrollIntoView({ block: "nearest" });
    try {
      await change(answerOf);
    } catch (error) {
      if (error.name === "AbortError") return false;
      if (!isStored) {
        turn.remove();
        text.value ||= said.trim();
      }
      talk.append(alert(error));
      return false;
    }
    await Promise.all(aloud);
    return true;
  }

  /** Say again what was said last; all of it, in a new chat, if this one is over or keeps an earlier version. */
  async function sayAgain() {
    if (!(await before())) return;
    const said = kept().slice(1).map((turn) => turn.user_message?.text || " ");
    if (!isOver() && again.isCurrent()) {
      await rewind(kept().at(-2).id);
      await send(said.at(-1));
      return;
    }
    await open();
    for (const each of said) if (isOver() || !(await send(each))) return;
  }

  const goBack = (turn, number) => button("Go back to here", () => rewind(turn.id),
    { kind: "small go-back", "aria-label": `Go back to ${number ? `turn ${number}` : "the opening"}` });

  function accept(now) {
    if (chat?.workflow_run_id === now.workflow_run_id && chat.revision > now.revision) return; // its end was quicker
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
    const isHere = [say, tools].some((each) => each.contains(document.activeElement));
    say.hidden = isOver();
    hint.hidden = chat !== null;
    show(state,
      chat && (chat.is_completed ? ["Result: ", stateBadge(chat.gathered_context?.call_disposition ?? "ended")] : stateBadge(isRewound() ? "rewound" : "running")),
      chat && link(`Chat ${chat.workflow_run_id}`, `/agents/${workflow.id}/runs/${chat.workflow_run_id}`),
      chat?.session_data.discarded_future.length > 0 && h("span", { class: "quiet" }, `${chat.session_data.discarded_future.length} taken back`));
    show(tools,
      isOver() && button(chat ? "Start again" : "Start", open, { kind: "primary" }),
      again && chat && kept().length > 1 && button("Say it again", sayAgain),
      isRewound() && button("Undo going back", () => rewind(null)),
      !isOver() && button("Stay silent", () => send(" ")),
      !isOver() && canListen && button(voice ? "Stop the voice" : "Talk by voice", () => (voice ? voice.abort() : talkByVoice()), { "aria-pressed": String(Boolean(voice)) }),
      !isOver() && button("End", end),
      !isOver() && button("Start again", open));
    if (isHere && isOver() && !tools.contains(document.activeElement)) tools.querySelector("button").focus({ preventScroll: true });
  }

  async function open() {
    if (!(await before())) return;
    if (!isOver()) await end().catch(() => {});
    busy += 1;
    try {
      accept(await api.post(path, { body: { initial_context: readContext() }, signal }));
    } finally {
      busy -= 1;
    }
    show(heard, h("p", {}, lastWords()));
    text.focus();
  }

  /** Show a chat as it is now, and once more when the turn is answered that it waits for. */
  async function load(run) {
    accept(await api.get(`${path}/${encodeURIComponent(run)}`, { signal }));
    if (chat.session_data.status !== "pending_assistant_turn") return;
    const { workflow_run_id: id, revision } = chat;
    const answered = new AbortController();
    signal.addEventListener("abort", () => answered.abort(), { once: true });
    every(UNTIL_ANSWERED, answered.signal, async () => {
      if (chat.workflow_run_id === id && chat.revision === revision) {
        const now = await api.get(url(""), { signal });
        if (now.revision === revision) return;
        accept(now);
      }
      answered.abort();
    }, { later: true });
  }

  /** Speak the agent's words and listen in turn, until somebody stops it or the chat is over. */
  function talkByVoice() {
    voice = new AbortController();
    const { signal: off } = voice;
    signal.addEventListener("abort", () => voice?.abort(), { once: true });
    conversation(off).catch((error) => error.name !== "AbortError" && notify(error.message, "error")).finally(() => {
      voice = null;
      text.placeholder = PLACEHOLDER;
      if (!signal.aborted) showState();
    });
    showState();
  }

  async function conversation(off) {
    await speak(lastWords(), language, off);
    while (!off.aborted && !isOver()) {
      text.placeholder = "Listening…";
      const said = await listen(language, off, (part) => (text.value = part));
      text.value = "";
      if (off.aborted || !said) return;
      if (!(await send(said, off))) return;
    }
  }

  showState();
  const element = h("div", { class: "stack" },
    hint, state, talk, heard, say, tools,
    h("p", { class: "quiet" }, "The draft answers, if there is one; that is a test, and sends no webhooks by itself. What is said is kept under Calls."));
  return {
    element,
    open,
    /** Go on with a chat that is there already. */
    load,
    tell,
    stop: () => voice?.abort(),
  };
}

// The turns of a conversation, as runs and text chats have them: what was said, and what happened meanwhile.

// The events of a run's log, by the names that the turns of a text chat have for them.
const KINDS = {
  "rtf-node-transition": "node_transition",
  "rtf-function-call-start": "tool_call_started",
  "rtf-function-call-end": "tool_call_result",
  "rtf-variables-extracted": "variables_extracted",
  "rtf-pipeline-error": "execution_error",
  "rtf-ttfb-metric": "model_answered",
  "rtf-not-understood": "not_understood",
};

/**
 * @typedef {object} Turn
 * @property {number} number 0 is the opening
 * @property {string} title
 * @property {string} [at] when it began
 * @property {{who: "caller" | "agent", text: string, keyed?: boolean}[]} said in order
 * @property {{type: string, payload: object, created_at: string}[]} events as those of a text chat's turn
 * @property {Record<string, number> | null} waits how long the caller waited, as in rtf-latency-measured: latency_seconds,
 *   and what else was measured
 * @property {boolean} [isPending] whether the answer isn't whole yet
 */

const titleOf = (number) => (number === 0 ? "Opening" : `Turn ${number}`);

/** The turns of a run, from the events of its log. */
export function turnsOfRun(run) {
  const turns = new Map();
  for (const { type, payload, turn: number, timestamp } of run.logs?.realtime_feedback_events ?? []) {
    if (!turns.has(number)) {
      turns.set(number, { number, title: titleOf(number), at: timestamp, said: [], events: [], waits: null });
    }
    const turn = turns.get(number);
    if (type === "rtf-user-transcription") turn.said.push({ who: "caller", text: payload.text, keyed: payload.keyed });
    else if (type === "rtf-bot-text") turn.said.push({ who: "agent", text: payload.text });
    else if (type === "rtf-latency-measured") turn.waits = payload;
    else turn.events.push({ type: KINDS[type] ?? type, payload: ofRun(type, payload), created_at: timestamp });
  }
  for (const [number, turn] of turns) {
    // A silence is in no log; what follows it is.
    if (number > 0 && !turn.said.some(({ who }) => who === "caller")) turn.said.unshift({ who: "caller", text: "" });
  }
  return [...turns.values()];
}

function ofRun(type, payload) {
  if (type === "rtf-pipeline-error") return { message: payload.error, processor: payload.processor };
  if (type !== "rtf-ttfb-metric") return payload;
  return { provider: payload.processor, model: payload.model, purpose: "reply", milliseconds: payload.ttfb_seconds * 1000 };
}

/** A turn of a text chat. */
export function turnOfChat(turn, number) {
  const said = [];
  if (turn.user_message) said.push({ who: "caller", text: turn.user_message.text });
  if (turn.assistant_message) said.push({ who: "agent", text: turn.assistant_message.text });
  const until = turn.assistant_message?.created_at;
  return {
    number,
    title: titleOf(number),
    at: turn.created_at,
    said,
    events: turn.events,
    waits: until ? { latency_seconds: (new Date(until) - new Date(turn.created_at)) / 1000 } : null,
    isPending: turn.status === "pending",
  };
}

/**
 * What the events of a turn say: the edges taken, each with the model's `call` of it, the tools called and how long they `took`,
 * the variables found, the models, the errors.
 */
export function reasons(events) {
  const found = { entered: null, edges: [], tools: [], variables: {}, models: [], errors: [], end: null, misses: 0, lookedAt: [] };
  const open = new Map();
  for (const { type, payload, created_at: at } of events) {
    if (type === "tool_call_started") {
      open.set(payload.tool_call_id, { name: payload.function_name, arguments: payload.arguments, result: null, edge: null, at, took: null });
      found.tools.push(open.get(payload.tool_call_id));
    } else if (type === "tool_call_result") {
      const call = open.get(payload.tool_call_id);
      if (call) Object.assign(call, { result: parsed(payload.result), took: new Date(at) - new Date(call.at) });
      open.delete(payload.tool_call_id);
    } else if (type === "node_transition" && payload.previous_node_id === null) {
      found.entered = payload;
    } else if (type === "node_transition") {
      // The function by which the model took the edge is no tool.
      const call = [...open.values()][0] ?? null;
      found.edges.push({ ...payload, call });
      if (call) call.edge = payload;
    } else if (type === "variables_extracted") {
      Object.assign(found.variables, payload.variables);
    } else if (type === "model_answered") {
      found.models.push(payload);
    } else if (type === "execution_error") {
      found.errors.push(payload.processor ? `${payload.processor}: ${payload.message}` : payload.message);
    } else if (type === "not_understood") {
      found.misses = payload.misses;
      found.lookedAt = payload.edges ?? [];
    } else if (type === "session_end") {
      found.end = payload.reason;
    }
  }
  found.tools = found.tools.filter((call) => call.edge === null);
  return found;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The waits of a run's turns: for each thing that was waited for, its name and the seconds, the shortest first. */
export function waitsOf(turns) {
  const all = turns.map((turn) => turn.waits).filter(Boolean);
  const isAhead = all.some((waits) => waits.last_sentence_seconds !== undefined);
  return [
    ["The model's first word", (waits) => waits.first_word_seconds],
    [isAhead ? "The first sentence" : "The answer", (waits) => waits.latency_seconds],
    isAhead && ["The last sentence", (waits) => waits.last_sentence_seconds ?? waits.latency_seconds],
    ["The carrier's transcript", (waits) => waits.recognition_seconds],
    ["A round trip to the carrier", (waits) => waits.round_trip_seconds],
  ].filter(Boolean)
    .map(([name, of]) => [name, all.map(of).filter((seconds) => seconds !== undefined).sort((one, other) => one - other)])
    .filter(([, seconds]) => seconds.length);
}

/** The node where a turn ends and the edge by which it was entered, as [node id, edge id]; nulls when nothing moved. */
export function placeOf(events) {
  const moved = events.filter((event) => event.type === "node_transition").at(-1)?.payload;
  return moved ? [moved.node_id, moved.edge_id ?? null] : [null, null];
}

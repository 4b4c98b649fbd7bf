// A simulated call from or to an agent, with the lines of the person on the phone, followed while it goes on.

import { api } from "../../app/api.js";
import { followRun } from "../../app/live-run.js";
import { placeOf, turnsOfRun } from "../../app/turns.js";
import { callout, field, form, input, link, select, stateBadge, textarea } from "../../parts/components.js";
import { h, show } from "../../parts/dom.js";
import { answererOf, showList, turnView } from "./turns.js";

const TRANSFERS = [["answered", "Answered"], ["busy", "Busy"], ["no-answer", "Not answered"], ["failed", "Failed"], ["canceled", "The caller hangs up meanwhile"]];
const LINES = "Write your part before the call: one line for each answer. An empty line is silence, and “keys: 12#” presses keys. "
  + "After the last line you hang up. Without any lines, you say yes to three questions.";

/** The lines in a text field; null for none. */
function linesOf(text) {
  if (!text.trim()) return null;
  return text.replace(/\n+$/, "").split("\n").map((line) => {
    const keys = /^keys:\s*([0-9*#]+)\s*$/i.exec(line);
    return keys ? { keys: keys[1] } : line;
  });
}

/**
 * The forms of both directions. `readContext()` gives the initial variables, `light(node, edge)` the drawing's node, and
 * `variables(found)` is called with what the run has gathered.
 */
export function simulatedCalls({ workflow, signal, readContext, light, variables }) {
  const course = h("div", { class: "conversation", role: "log", "aria-label": "The call" });
  const state = h("p", { class: "actions", role: "status" });
  let following = new AbortController();

  async function follow(answer) {
    following.abort();
    following = new AbortController();
    signal.addEventListener("abort", () => following.abort(), { once: true });
    const path = `/agents/${workflow.id}/runs/${answer.workflow_run_id}`;
    showList(course, []);
    await followRun(workflow.id, answer.workflow_run_id, following.signal, (run) => {
      show(state, run.is_completed ? ["Result: ", stateBadge(run.disposition ?? "ended")] : stateBadge("in_progress"),
        link(`Call ${run.id}`, path));
      const turns = turnsOfRun(run);
      const model = answererOf(run);
      showList(course, turns, (turn) => turnView(turn, { model }));
      const [node, edge] = turns.map((turn) => placeOf(turn.events)).filter(([each]) => each).at(-1) ?? [null, null];
      light(node, edge);
      variables(run.gathered_context ?? {});
    });
  }

  function from() {
    const number = input({ value: "+12025550123", required: true, inputmode: "tel" });
    const lines = textarea("", { rows: "4" });
    const transfer = select(TRANSFERS, "answered");
    return form("Let it call you", async () => {
      const simulator = (await api.get("/organizations/telephony-configs", { signal })).configurations
        .find((each) => each.provider === "simulator");
      if (!simulator) throw new Error("There is no simulator among the carriers. Add one on the page Carriers.");
      const said = linesOf(lines.value);
      const context = { ...readContext(), simulated_transfer: transfer.value, ...(said && { simulated_callee: said }) };
      await start(() => api.post("/telephony/initiate-call", {
        body: { workflow_id: workflow.id, phone_number: number.value, telephony_configuration_id: simulator.id, initial_context: context }, signal,
      }));
    },
    h("p", { class: "quiet" }, "A simulated call: no telephone rings. The draft calls, if there is one."),
    field("Your number", number, { name: "phone_number", required: true, help: "A number that ends in 0101 is busy, in 0102 doesn't answer, in 0104 has a machine that answers." }),
    field("What you say in the call", lines, { name: "lines", help: LINES }),
    field("If it transfers the call, that call is", transfer, { name: "transfer" }));
  }

  function to() {
    const number = input({ value: "+12025550123", required: true, inputmode: "tel" });
    const lines = textarea("", { rows: "4" });
    const transfer = select(TRANSFERS, "answered");
    return h("div", {},
      workflow.version_status === "draft" && callout("The published version answers, not the draft that is drawn here."),
      form("Call it", () => start(() => api.post("/telephony/simulated-call", {
        body: { workflow_id: workflow.id, from_number: number.value, lines: linesOf(lines.value), transfer: transfer.value }, signal,
      })),
      h("p", { class: "quiet" }, "A simulated call: no telephone rings. The published version answers, and knows nothing of you but the numbers."),
      field("Your number", number, { name: "from_number", required: true }),
      field("What you say in the call", lines, { name: "lines", help: LINES }),
      field("If it transfers the call, that call is", transfer, { name: "transfer" })));
  }

  async function start(request) {
    const answer = await request();
    follow(answer); // goes on without the form
  }

  const view = (fields) => h("div", { class: "stack" }, fields, state, course);
  const stop = () => {
    following.abort();
    show(state);
    showList(course, []);
  };
  return { from: () => (stop(), view(from())), to: () => (stop(), view(to())), stop };
}

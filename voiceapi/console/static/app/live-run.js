// A run followed while it goes on.

import { api } from "./api.js";
import { every } from "./router.js";

const MILLISECONDS = 700;

/** Ask for a run until it has ended and call `show` with each state that differs. Ends early with the signal. */
export async function followRun(workflow, id, signal, show) {
  const ended = new AbortController();
  signal.addEventListener("abort", () => ended.abort(), { once: true });
  let before = "";
  await every(MILLISECONDS, ended.signal, async () => {
    const run = await api.get(`/workflow/${workflow}/runs/${id}`, { signal });
    const text = JSON.stringify(run);
    if (text !== before) show(run);
    before = text;
    if (run.is_completed) ended.abort();
  });
}

// What was tested in this tab: the last result of each case, and of all cases of an agent together.

const results = new Map();
const runs = new Map();

const key = (agent, id) => `${agent}/${id}`;

/** Keep the result of a stored case; null forgets it, once the case has changed. */
export function keepResult(agent, id, result) {
  if (result) results.set(key(agent, id), { ...result, at: new Date().toISOString() });
  else results.delete(key(agent, id));
}

/** The last result of a stored case, with `at`; undefined if it wasn't run in this tab. */
export function lastResult(agent, id) {
  return results.get(key(agent, id));
}

/** Keep what the last test of an agent's cases led to. */
export function keepTest(agent, test) {
  runs.set(String(agent), test);
}

export function lastTest(agent) {
  return runs.get(String(agent));
}

// The choice of the version of an agent that is tried out.

import { api } from "../../app/api.js";
import { select } from "../../parts/components.js";

const MOST = 100;

/**
 * A drop-down of an agent's versions, the draft or the latest one chosen, and `chosen()`, which gives the version as the
 * API lists it. `wanted` is the number of the version to begin with.
 */
export async function versionChoice(agent, signal, wanted = null) {
  const all = await api.get(`/workflow/${agent}/versions`, { query: { limit: MOST }, signal });
  const numbers = all.map((each) => String(each.version_number));
  const control = select(all.map((each, at) => [numbers[at], `Version ${numbers[at]} (${each.status})`]),
    numbers.includes(wanted) ? wanted : numbers[0]);
  return { control, chosen: () => all[numbers.indexOf(control.value)] };
}

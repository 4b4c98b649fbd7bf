// The versions of an agent, with their definitions.

import { api } from "./api.js";

const PAGE = 100;

/** The version of an agent, as the API lists it, for which `isIt` is true, of all that there are; null for none. */
export async function versionWhere(agent, signal, isIt) {
  for (let offset = 0; ; offset += PAGE) {
    const found = await api.get(`/workflow/${encodeURIComponent(agent)}/versions`, { query: { limit: PAGE, offset }, signal });
    const version = found.find(isIt);
    if (version || found.length < PAGE) return version ?? null;
  }
}

// What a page keeps in the query of its address, so that a link to it shows the same.

/** The query of the address now. */
export function queryNow() {
  return new URLSearchParams(location.hash.split("?")[1] ?? "");
}

/** Change the query without loading the page again. */
export function setQuery(query) {
  const [path] = location.hash.slice(1).split("?");
  history.replaceState(history.state, "", `#${path}${query.size ? `?${query}` : ""}`);
}

/** Keep these values, and those that are there under other names. An empty one is taken out. */
export function keepInQuery(values) {
  const query = queryNow();
  for (const [name, value] of Object.entries(values)) {
    if (value === "" || value === null || value === undefined) query.delete(name);
    else query.set(name, value);
  }
  setQuery(query);
}

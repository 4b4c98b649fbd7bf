// A file of conversation cases that is dropped on the page.

const DEFAULTS = ["model", "context", "direction"];

/**
 * The cases in a JSON file, each with what the file says for all of them: a file of cases, a list of them, one case, or
 * what the API answers for stored ones.
 */
export function readCases(text) {
  const file = JSON.parse(text);
  const listed = Array.isArray(file) ? file : isObject(file) && Array.isArray(file.cases) ? file.cases : [file];
  if (!listed.length || !listed.every(isObject)) throw new Error("The file holds no conversation cases: it has no list “cases”.");
  const shared = Object.fromEntries(DEFAULTS.filter((name) => file[name] !== undefined && file.cases).map((name) => [name, file[name]]));
  return listed.map((each) => (isObject(each.case)
    ? { case: { ...each.case, name: each.name ?? each.case.name }, enabled: each.enabled !== false }
    : { case: withDefaults(each, shared), enabled: true }));
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

function withDefaults(given, shared) {
  const found = { ...shared, ...given };
  if (isObject(shared.context) && isObject(given.context)) found.context = { ...shared.context, ...given.context };
  return found;
}

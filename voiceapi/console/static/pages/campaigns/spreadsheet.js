// A contact list as spreadsheets give it, pasted or as a file: its delimiter, its columns, and what each is probably for.
// The rows stay as they are; only the heading is written anew.

// What of a list is looked at to guess: rows, and characters, so that a list of ten megabytes is as quick as a short one.
const ROWS = 30;
const CHARACTERS = 100_000;
const NUMBER = /^[+(]?[\d][\d\s()./-]{5,}$/;
const DATE = /^\d{1,4}([-./])\d{1,2}\1\d{1,4}\b/;
const NUMBERS_HEADING = /phone|mobile|\bcell|\btel|number|nummer|telefon|handy|mobil|telefoon|t[eé]l[eé]fono|m[oó]vil|portable|numero|n[uú]mero/i;

/** The first records of a text, as lists of cells, and where the first one ends. */
function records(text, delimiter, most) {
  const found = [];
  let cells = [];
  let cell = "";
  let isQuoted = false;
  let end = text.length;
  const endRecord = (at) => {
    cells.push(cell);
    if (cells.some((each) => each.trim())) {
      found.push(cells);
      if (found.length === 1) end = at;
    }
    cells = [];
    cell = "";
  };
  let at = 0;
  for (; at < text.length && found.length < most; at += 1) {
    const letter = text[at];
    if (isQuoted) {
      if (letter !== '"') cell += letter;
      else if (text[at + 1] === '"') cell += text[at += 1];
      else isQuoted = false;
    } else if (letter === '"' && cell === "") isQuoted = true;
    else if (letter === delimiter) {
      cells.push(cell);
      cell = "";
    } else if (letter === "\n") endRecord(at + 1);
    else if (letter !== "\r") cell += letter;
  }
  if (at >= text.length && (cell || cells.length)) endRecord(text.length);
  return { found, end };
}

const isNumber = (text) => NUMBER.test(text.trim()) && !DATE.test(text.trim()) && text.match(/\d/g).length >= 7;

/**
 * What a text is as a contact list: `columns`, each with its `name` in the heading, up to three `samples` and
 * `isNumber`, whether it is that of the numbers to call; `hasHeading`, whether the first row names columns; `write(names)`,
 * the list under a heading with these names, one for each column. Null if there is nothing in it. `isHeading`: whether the
 * first row names columns, where somebody knows; else it is guessed.
 */
export function spreadsheet(given, isHeading = null) {
  const text = given.replace(/^\uFEFF/, "");
  const beginning = text.slice(0, CHARACTERS);
  // What parts the first row into the most columns is most probably the delimiter; a tab, if there is any, surely is.
  const [, delimiter] = ["\t", ";", ","].map((each) => [records(beginning, each, 1).found[0]?.length ?? 0, each])
    .reduce((best, each) => (each[0] > best[0] ? each : best));
  const { found, end } = records(beginning, delimiter, ROWS);
  if (!found.length) return null;
  const hasHeading = isHeading ?? !found[0].some(isNumber);
  const rows = hasHeading ? found.slice(1) : found;
  const width = Math.max(...found.map((cells) => cells.length));
  const columns = Array.from({ length: width }, (_, at) => {
    const cells = rows.map((row) => (row[at] ?? "").trim()).filter(Boolean);
    const name = hasHeading ? (found[0][at] ?? "").trim() : "";
    const share = cells.length ? cells.filter(isNumber).length / cells.length : 0;
    return { name, samples: cells.slice(0, 3), score: share + (NUMBERS_HEADING.test(name) ? 0.6 : 0) + (name.toLowerCase() === "phone_number" ? 1 : 0) };
  });
  const best = columns.reduce((one, other) => (other.score > one.score ? other : one));
  const quoted = (name) => (/["\n\r]/.test(name) || name.includes(delimiter) ? `"${name.replaceAll('"', '""')}"` : name);
  return {
    hasHeading,
    columns: columns.map(({ name, samples, score }, at) => ({
      name, samples, isNumber: columns[at] === best && score > 0.5,
    })),
    write: (names) => `${names.map(quoted).join(delimiter)}\n${hasHeading ? text.slice(end) : text}`,
  };
}

/** A file as text: UTF-8, UTF-16 with its mark, else Windows-1252, as spreadsheets save it. An error for a workbook. */
export async function textOf(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if ((bytes[0] === 0x50 && bytes[1] === 0x4b) || (bytes[0] === 0xd0 && bytes[1] === 0xcf)) {
    throw new Error(`${file.name} is a workbook, which can't be read here. Copy its cells and paste them, or save it as CSV.`);
  }
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)) {
    return new TextDecoder(bytes[0] === 0xff ? "utf-16le" : "utf-16be").decode(bytes);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

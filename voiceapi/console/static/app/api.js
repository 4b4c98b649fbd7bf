// Requests to the API of this service, at `api/v1` beside the console's folder.

import { notify } from "../parts/notices.js";
import { key, renewed } from "./session.js";

/** Where the API is. */
export const BASE = new URL("../../api/v1", import.meta.url).href;
// A reading request that the service is too busy for is sent again, if it says that this helps soon.
const LONGEST_WAIT = 5;
const REPEATS = 2;

/** An answer that isn't a success: `status` (0 without an answer), `items` ({loc, msg, type}) of a 422, one sentence. */
export class ApiError extends Error {
  constructor(status, detail, retryAfter = null) {
    const items = Array.isArray(detail) ? detail.map((item) => ({ ...item, msg: item.msg.replace(/^Value error, /, "") })) : [];
    super((items.length ? items.map(describe).join(" ") : sentence(detail, status)) + advice(detail, retryAfter));
    this.status = status;
    this.detail = detail;
    this.items = items;
    this.retryAfter = retryAfter;
  }
}

function describe(item) {
  const place = item.loc.slice(1).join(".");
  return place ? `${place}: ${item.msg}` : item.msg;
}

function sentence(detail, status) {
  if (typeof detail === "string") return detail;
  if (detail?.errors?.length) return detail.errors.map((error) => error.message).join(" ");
  if (detail?.message) return detail.message;
  return status ? `The service answered with ${status}.` : "The service can't be reached.";
}

/** When to try again, unless the text says so. */
function advice(detail, retryAfter) {
  if (retryAfter === null || /\b\d+ s\b/.test(detail)) return "";
  return ` Try again in ${retryAfter} s.`;
}

/** Show what the service noted about a request that it carried out, such as fields that it doesn't know. */
function showWarnings(header) {
  for (const [, quoted] of (header ?? "").matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)) {
    const text = quoted.replaceAll(/%[0-9A-F]{2}(?:%[0-9A-F]{2})*/g, (escaped) => {
      try {
        return decodeURIComponent(escaped);
      } catch {
        return escaped;
      }
    });
    notify(`The service notes: ${text}.`, "warning");
  }
}

function wait(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}

async function send(method, path, { query, body, form, headers = {}, signal, ask = true } = {}) {
  const url = new URL(BASE + path);
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
  }
  const content = form ?? (body === undefined ? undefined : JSON.stringify(body));
  for (let repeats = 0; ; ) {
    const used = key();
    const given = { ...(used ? { "X-API-Key": used } : {}), ...headers };
    if (body !== undefined) given["Content-Type"] ??= "application/json";
    let response;
    try {
      response = await fetch(url, { method, headers: given, body: content, signal, credentials: "same-origin", cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, null);
    }
    if (response.ok) {
      showWarnings(response.headers.get("Warning"));
      return response;
    }
    const detail = (await response.json().catch(() => null))?.detail;
    signal?.throwIfAborted();
    // What was typed stays on the page, and the request is sent again with the new key.
    if (response.status === 401 && ask && (await renewed(used, method !== "GET"))) continue;
    const seconds = Number(response.headers.get("Retry-After"));
    const retryAfter = Number.isInteger(seconds) && seconds > 0 ? seconds : null;
    if (method === "GET" && response.status === 503 && retryAfter !== null && retryAfter <= LONGEST_WAIT && repeats < REPEATS) {
      repeats += 1;
      await wait(retryAfter, signal);
      continue;
    }
    throw new ApiError(response.status, detail, retryAfter);
  }
}

async function json(method, path, options) {
  return jsonOf(await send(method, path, options));
}

/** The value of a Response that is JSON; null if it has no content. */
export async function jsonOf(response) {
  if (response.status === 204) return null;
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(response.status, "What answered isn't the service: its answer isn't JSON.");
  }
}

/** The server-sent events that answer a POST, each as [name, value]. Who asks stops at the last one: an end is a failure. */
async function* events(path, options) {
  const reader = (await send("POST", path, options)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Error("closed");
      const whole = (rest + value).split("\n\n");
      rest = whole.pop();
      for (const event of whole) {
        const [, name, data] = /^event: (.*)\ndata: (.*)$/s.exec(event) ?? [];
        if (name === "error") throw new ApiError(0, JSON.parse(data).detail);
        if (name) yield [name, JSON.parse(data)];
      }
    }
  } catch (error) {
    if (error instanceof ApiError || error.name === "AbortError") throw error;
    throw new ApiError(0, "The connection to the service broke off.");
  } finally {
    reader.cancel().catch(() => {});
  }
}

/**
 * Each takes a path below /api/v1 and `{query, body, form, headers, signal}`; raises ApiError. When a key is refused, the
 * page asks for another and the request goes on with it; `ask: false` leaves that to the caller.
 */
export const api = {
  get: (path, options) => json("GET", path, options),
  post: (path, options) => json("POST", path, options),
  put: (path, options) => json("PUT", path, options),
  patch: (path, options) => json("PATCH", path, options),
  delete: (path, options) => json("DELETE", path, options),
  /** The whole Response, for headers such as ETag and for what isn't JSON. */
  send,
  events,
  text: async (path, options) => (await send("GET", path, options)).text(),
};

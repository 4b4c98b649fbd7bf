// Asking for an API key: on a page of its own, and over the page whose request was refused.

import { dialogForm } from "../parts/dialogs.js";
import { h } from "../parts/dom.js";
import { field, form, input } from "../parts/forms.js";
import { ApiError, api } from "./api.js";
import { forgetKey, hasHostLogin, isKey, key, useKey } from "./session.js";

const help = () => ["A long text, which often begins with va_. The service prints one when it is started for the first time; whoever runs it makes another with the command ",
  h("code", {}, "voiceapi console"), ". This browser tab keeps the key until you close it or sign out."];

function keyField() {
  const control = input({ type: "password", autocomplete: "current-password", spellcheck: "false" });
  const box = field("API key", control, { name: "key", required: !hasHostLogin, help: help() });
  const take = async () => {
    const value = control.value.trim();
    if (!value && hasHostLogin) return useLogin();
    if (!isKey(value)) throw refusal("A key has 16 to 128 characters without blanks.");
    await check(value);
    useKey(value);
  };
  return { box, control, take };
}

const refusal = (msg) => new ApiError(422, [{ loc: ["body", "key"], msg }]);

/** Ask the service whether it lets the key in, or without one the host's login. */
async function check(value = null) {
  try {
    await api.get("/user/api-keys", { ask: false, headers: value ? { "X-API-Key": value } : {} });
  } catch (error) {
    if (error.status !== 401) throw error;
    throw refusal(value ? "The service doesn't know this key, or it was archived." : "The login doesn't let you in yet.");
  }
}

/** Go on without a key, if the host's login lets the page in. */
async function useLogin() {
  const before = key();
  forgetKey();
  try {
    await check();
  } catch (error) {
    if (before) useKey(before);
    throw error;
  }
}

/** The form of the page that asks for a key; `act` is called once there is one. */
export function signInForm(act) {
  const { box, control, take } = keyField();
  const element = form("Continue", async () => {
    await take();
    act();
  }, box);
  return { element, control };
}

/** Ask for another key over the page, which stays as it is. True once there is one. */
export async function askForKey() {
  const { box, take } = keyField();
  const reason = key() === null
    ? "Your login has ended, or doesn't reach here. Log in again in another tab and go on, or use an API key."
    : "The service doesn't accept this tab's API key any more. Give another to go on; what you typed is still here.";
  const given = await dialogForm({ title: "An API key, please", submit: "Go on", act: take, cancel: "Not now", isWork: false },
    h("p", {}, reason), box);
  return given !== null;
}

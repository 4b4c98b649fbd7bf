// Records that pages edit: read with their tags, and changed only if nobody else has changed them since.

import { button, confirm } from "../parts/components.js";
import { h } from "../parts/dom.js";
import { api, jsonOf } from "./api.js";

export class Edited {
  /** `value`: the record as it was read; `tag`: its ETag, or null to change it whatever is stored. */
  constructor(path, signal) {
    Object.assign(this, { path, signal, value: null, tag: null });
  }

  /** The record at this path of the API. */
  static async read(path, signal) {
    const record = new Edited(path, signal);
    await record.reload();
    return record;
  }

  /** Read it again. */
  async reload() {
    const response = await api.send("GET", this.path, { signal: this.signal });
    this.value = await jsonOf(response);
    this.tag = response.headers.get("ETag");
  }

  /** The answer to a change, at `where` if that is another path. An ApiError of 412: somebody else was quicker. */
  async send(method, body, where = this.path) {
    const headers = this.tag ? { "If-Match": this.tag } : {};
    const response = await api.send(method, where, { body, headers, signal: this.signal });
    this.tag = response.headers.get("ETag");
    return jsonOf(response);
  }

  /**
   * What `formWith` and `dialogForm` show of an error: a question if somebody else was quicker. `what`: the beginning of
   * the sentence, such as "This tool was"; `again` shows what is stored.
   */
  asks(what, again) {
    return (error, retry, close) => (error.status === 412 ? this.question(what, () => (close?.(), again()), retry) : null);
  }

  /** What to do with a change that somebody else was quicker than; `insist` sends it again, whatever is stored. */
  question(what, again, insist, text = "Save mine over it") {
    return h("div", { class: "callout", role: "alert" },
      h("p", {}, `${what} changed by somebody else, or in another tab, since you opened it. Nothing was done yet.`),
      h("div", { class: "actions" },
        button("Show what is stored", async () => {
          if (await confirm("What you changed here is dropped.", "Drop it")) await again();
        }),
        button(text, () => {
          this.tag = null;
          return insist();
        }, { kind: "danger" })));
  }
}

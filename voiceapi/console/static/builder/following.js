// The way of a conversation on the canvas: where it is is lit, and the view follows until somebody moves it by hand.

import { h } from "../parts/dom.js";

/** `decorate(names)` lights "node" or "edge" and the id; `reveal(id)` shows a node. `show()` shows it once more. */
export function following({ decorate, reveal }) {
  let lit = [null, null]; // the ids of the node and the edge
  let isFollowing = true;
  const button = h("button", { type: "button", class: "button small", hidden: true, on: { click: () => {
    isFollowing = true;
    show();
  } } }, "Follow");

  function show() {
    decorate(new Set(["node", "edge"].filter((_, at) => lit[at] !== null).map((kind, at) => `${kind} ${lit[at]}`)));
    if (lit[0] !== null && isFollowing) reveal(lit[0]);
    button.hidden = isFollowing || lit[0] === null;
  }

  return {
    button,
    show,
    light(node = null, edge = null) {
      if (node === null) isFollowing = true;
      lit = [node, edge];
      show();
    },
    /** The view was moved by hand. */
    leave() {
      if (lit[0] === null || !isFollowing) return;
      isFollowing = false;
      show();
    },
  };
}

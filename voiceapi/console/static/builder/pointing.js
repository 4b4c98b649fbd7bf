// The pointer on the canvas: its events are given to the machine of gestures, whose orders are carried out.

import { IDLE, next } from "./gestures.js";
import { inGraph, panned, wheeled } from "./view.js";

const BORDER = 28; // pixels from the canvas' border in which the view moves while something is dragged
const DRIFT = 12; // pixels a frame
const DRIFTING = new Set(["moving", "marquee", "connecting"]);
const OPENING = new Set(["menu", "press", "lead", "choose"]);
const LONG = 500; // milliseconds of a press that is a long one

const isHeld = (event) => event.ctrlKey || event.metaKey;

/**
 * `view()` is what is seen, `see(view)` changes it, `look(view)` by hand; `takesWheel()`: whether the wheel is its own;
 * `find(key)` what is drawn. `about(key)` says of a press what the machine wants
 * to know of it; `pressed(key)` is called when one begins. `orders`: what the machine orders, by name. `twice(key, at)` gets a
 * double click, `menu(key, at)` a right one, `hover(key)` what the pointer is over, each null for the ground.
 *
 * Returned: `name()` of the gesture; `keyOf(element)`, of what it belongs to; `cancel()`, which ends it; `end()` when the page is
 * left; `last()`, where the pointer was last in the graph, or null if it isn't over the canvas; `plain(event)`, {x, y, graph} of
 * an event.
 */
export function pointing(box, { view, see, look, find, about, takesWheel, pressed, orders, twice, menu, hover }) {
  let gesture = IDLE;
  let pointer = null; // the last event of the gesture's pointer
  let last = null;
  let holding = null;
  let isDone = false; // the touch has opened something, so that it is no click on it
  let second = null; // the last event of another finger

  function plain(event, type) {
    const { left, top } = box.getBoundingClientRect();
    const at = { x: event.clientX - left - box.clientLeft, y: event.clientY - top - box.clientTop };
    return { type, ...at, graph: inGraph(view(), at), isFree: event.altKey };
  }

  function point(event) {
    const [state, given] = next(gesture, event);
    const began = state.name !== gesture.name;
    gesture = state;
    for (const [order, ...values] of given) orders[order](...values);
    isDone ||= given.some(([order]) => OPENING.has(order));
    if (state === IDLE) pointer = second = null;
    if (began) clearTimeout(holding);
    box.classList.toggle("panning", state.name === "panning");
    if (began && DRIFTING.has(state.name)) requestAnimationFrame(drift);
  }

  /** While something is dragged at the canvas' border, the view moves there. */
  function drift() {
    if (!pointer || !DRIFTING.has(gesture.name)) return;
    const { x, y } = plain(pointer);
    const speed = (at, length) => (at < BORDER ? DRIFT : at > length - BORDER ? -DRIFT : 0);
    const [dx, dy] = [speed(x, box.clientWidth), speed(y, box.clientHeight)];
    if (dx || dy) {
      see(panned(view(), dx, dy));
      point(plain(pointer, "move"));
    }
    requestAnimationFrame(drift);
  }

  const keyOf = (target) => {
    const { of: held, key } = target.closest(".handle, g[data-key]")?.dataset ?? {};
    return find(held ?? key ?? null)?.key ?? null;
  };
  const isOurs = (event) => [pointer, second].some((each) => each?.pointerId === event.pointerId);

  /** The middle of two fingers, and how far they are apart. */
  function between(type) {
    const [one, other] = [plain(pointer), plain(second)];
    return { type, x: (one.x + other.x) / 2, y: (one.y + other.y) / 2, apart: Math.max(1, Math.hypot(one.x - other.x, one.y - other.y)) };
  }

  box.addEventListener("pointerdown", (event) => {
    if (!second && [event, pointer].every((each) => each?.pointerType === "touch")) {
      second = event;
      box.setPointerCapture(event.pointerId);
      point(between("second"));
    }
    if (pointer) return;
    const { part } = event.target.closest(".handle")?.dataset ?? {};
    const on = keyOf(event.target);
    pointer = event;
    point({ ...plain(event, "down"), ...about(on), on, part, isGrip: Boolean(event.target.closest(".grip")), button: event.button, isTouch: event.pointerType === "touch", adds: event.shiftKey || isHeld(event), shift: event.shiftKey });
    if (gesture === IDLE) return;
    // The end of the gesture comes here, wherever the pointer is by then.
    box.setPointerCapture(event.pointerId);
    isDone = false;
    holding = setTimeout(() => point({ type: "hold" }), LONG);
    pressed(on);
  });
  box.addEventListener("pointermove", (event) => {
    last = event;
    if (!isOurs(event)) return;
    if (event.pointerId === pointer.pointerId) pointer = event;
    else second = event;
    point(second ? between("move") : plain(event, "move"));
  });
  box.addEventListener("pointerleave", () => { last = null; });
  box.addEventListener("pointerup", (event) => isOurs(event) && point(plain(event, "up")));
  const cancel = () => pointer && point({ type: "cancel" });
  for (const lost of ["pointercancel", "lostpointercapture"]) box.addEventListener(lost, (event) => isOurs(event) && cancel());
  box.addEventListener("mousedown", (event) => event.preventDefault()); // the focus is given elsewhere; no text is selected
  box.addEventListener("dblclick", (event) => {
    // The pointer was captured, so the event itself is the canvas'.
    const target = document.elementFromPoint(event.clientX, event.clientY);
    if (box.contains(target) && !target.closest(".handle")) twice(keyOf(target), plain(event));
  });
  box.addEventListener("contextmenu", (event) => {
    event.preventDefault();
    if (gesture === IDLE) menu(keyOf(event.target), plain(event));
  });
  box.addEventListener("pointerover", (event) => event.pointerType !== "touch" && gesture === IDLE && hover(keyOf(event.target)));
  box.addEventListener("touchend", (event) => isDone && event.cancelable && event.preventDefault());
  // A screen reader presses without a pointer.
  box.addEventListener("click", (event) => event.detail === 0 && keyOf(event.target) && orders.select(keyOf(event.target), false));
  box.addEventListener("wheel", (event) => {
    if (!takesWheel() && !isHeld(event)) return;
    event.preventDefault();
    look(wheeled(view(), event, plain(event), box.clientHeight));
  }, { passive: false });

  const leave = (event) => event.target === window && cancel();
  window.addEventListener("blur", leave);

  return { plain, keyOf, cancel, end: () => window.removeEventListener("blur", leave), name: () => gesture.name, last: () => last && plain(last).graph };
}

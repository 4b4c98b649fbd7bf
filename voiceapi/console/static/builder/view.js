// Which part of the graph is seen: {x, y, zoom}, where its origin is on the canvas in pixels, and how large its unit.

export const LEAST = 0.1;
export const MOST = 2;
const MARGIN = 24; // pixels
const NARROW = 500; // pixels
const READABLE = 0.6; // zoom

export const inGraph = (view, { x, y }) => ({ x: (x - view.x) / view.zoom, y: (y - view.y) / view.zoom });

export const onCanvas = (view, { x, y }) => ({ x: x * view.zoom + view.x, y: y * view.zoom + view.y });

export const panned = (view, dx, dy) => ({ ...view, x: view.x + dx, y: view.y + dy });

/** Zoomed so that what is at a point of the canvas stays there. */
export function zoomedTo(view, wanted, point) {
  const zoom = Math.min(MOST, Math.max(LEAST, wanted));
  const { x, y } = inGraph(view, point);
  return { x: point.x - x * zoom, y: point.y - y * zoom, zoom };
}

/** The view that shows a box of the graph {left, top, right, bottom} in the middle of a canvas {width, height}, however small. */
export function fitting(box, size, most = 1) {
  const wide = Math.max(1, box.right - box.left);
  const high = Math.max(1, box.bottom - box.top);
  const zoom = Math.min(most, Math.max(0.01, Math.min((size.width - 2 * MARGIN) / wide, (size.height - 2 * MARGIN) / high)));
  return { x: (size.width - zoom * (box.left + box.right)) / 2, y: (size.height - zoom * (box.top + box.bottom)) / 2, zoom };
}

/** Panned as little as it takes to show a box of the graph; its upper left corner if it is larger than the canvas. */
export function showing(view, box, size) {
  const along = (low, high, length) => (low < MARGIN ? MARGIN - low : high > length - MARGIN ? Math.max(MARGIN - low, length - MARGIN - high) : 0);
  const [from, to] = [onCanvas(view, { x: box.left, y: box.top }), onCanvas(view, { x: box.right, y: box.bottom })];
  return panned(view, along(from.x, to.x, size.width), along(from.y, to.y, size.height));
}

/** Panned by a turn of the wheel, sideways with Shift, or zoomed at a point with Ctrl. `height`: of a canvas, in pixels. */
export function wheeled(view, { deltaX, deltaY, deltaMode, shiftKey, ctrlKey, metaKey }, point, height) {
  const pixels = deltaMode === 1 ? 16 : deltaMode === 2 ? height : 1;
  const [dx, dy] = [-deltaX * pixels, -deltaY * pixels];
  if (ctrlKey || metaKey) return zoomedTo(view, view.zoom * Math.exp(dy / 300), point);
  return shiftKey && !deltaX ? panned(view, dy, 0) : panned(view, dx, dy);
}

/**
 * On a narrow screen, a place so that it can be read says more than everything so that nothing can; `isWanted`: at any width,
 * because somebody asked for this place.
 */
export function readable(view, { x, y }, size, isWanted = false) {
  if ((size.width >= NARROW && !isWanted) || view.zoom >= READABLE) return view;
  return { x: size.width / 2 - x * READABLE, y: size.height / 2 - y * READABLE, zoom: READABLE };
}

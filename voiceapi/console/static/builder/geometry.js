// Where things are in the graph: sizes, the curves of edges and their labels, what touches, and what lies which way.

// The size of a node and of a label, as in voiceapi/workflows/drawing/layout.py, so that both drawings look alike.
export const NODE = { width: 184, height: 54 };
const LABEL = { width: 150, height: 22 };
// The drawing keeps stored places if the middles of any two nodes are this far apart, in one direction or the other.
const ROOM = { x: 196, y: 66 };
const FURTHEST = 1600; // from each other, for each node
const ARROW = 9;
const SPACE = 2; // between an arrow and its node
const SHARES = [0.5, 0.38, 0.62, 0.28, 0.72, 0.2, 0.8]; // of a curve, where a label may be: the first that is free

const boxAround = ({ x, y }, { width, height }) => ({ left: x - width / 2, top: y - height / 2, right: x + width / 2, bottom: y + height / 2 });

/** The box of a node, or of a note, whose place has its size, too. */
export const boxOfNode = (place) => boxAround(place, { ...NODE, ...place });

export const boxOfLabel = (place) => boxAround(place, { ...LABEL, width: place.width ?? LABEL.width });

/** The box around all of them, or null if there are none. */
export function around(boxes) {
  if (!boxes.length) return null;
  const [left, top] = ["left", "top"].map((side) => Math.min(...boxes.map((box) => box[side])));
  const [right, bottom] = ["right", "bottom"].map((side) => Math.max(...boxes.map((box) => box[side])));
  return { left, top, right, bottom };
}

export const touches = (one, other) =>
  one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

/** True if a node has room at a place among others. */
export const isFree = (places, place) =>
  !places.some((each) => Math.abs(each.x - place.x) < ROOM.x && Math.abs(each.y - place.y) < ROOM.y);

/** True if stored places can be shown as they are: no two nodes are at one, and none is so far off that nothing can be read. */
export function areUsable(places) {
  const names = new Set(places.map(({ x, y }) => `${x} ${y}`));
  const far = FURTHEST * places.length;
  const reach = (axis) => Math.max(...places.map((each) => each[axis])) - Math.min(...places.map((each) => each[axis]));
  return names.size === places.length && !(reach("x") > far) && !(reach("y") > far);
}

/** The place nearest to the wanted one at which a node overlaps none of those at `places`. */
function nearestFreePlace(places, wanted) {
  if (isFree(places, wanted)) return wanted;
  // It is beside another node: as far to a side, or up or down, as that node's room reaches.
  const along = (axis) => [wanted[axis], ...places.flatMap((each) => [each[axis] - ROOM[axis], each[axis] + ROOM[axis]])]
    .sort((one, other) => Math.abs(one - wanted[axis]) - Math.abs(other - wanted[axis]));
  const rows = along("y");
  let found = null;
  let nearest = Infinity;
  for (const x of along("x")) {
    if (Math.abs(x - wanted.x) >= nearest) break;
    for (const y of rows) {
      const distance = Math.hypot(x - wanted.x, y - wanted.y);
      if (distance >= nearest) break; // the other rows are further away
      if (isFree(places, { x, y })) [found, nearest] = [{ x, y }, distance];
    }
  }
  return found;
}

/** Free places for nodes that come together: the nearest to those wanted, beside the nodes at `taken` and each other. */
export function besides(taken, wanted) {
  const all = [...taken];
  return wanted.map(({ x, y }) => {
    all.push(nearestFreePlace(all, { x: Math.round(x), y: Math.round(y) }));
    return all.at(-1);
  });
}

/** Where dragged nodes and notes are dropped, by key: nodes beside those that stay, which aren't moved. `moved` has the keys. */
export function dropped(nodes, notes, moved) {
  const [stay, goes] = [false, true].map((isMoved) => nodes.filter(({ key }) => moved.has(key) === isMoved));
  const free = besides(stay.map(({ place }) => place), goes.map(({ place }) => place));
  const lies = notes.filter(({ key }) => moved.has(key)).map(({ key, place: { x, y } }) => [key, { x: Math.round(x), y: Math.round(y) }]);
  return new Map([...goes.map(({ key }, at) => [key, free[at]]), ...lies]);
}

/**
 * The nearest of `others` ({key, place}) in a direction ({x, y} of -1, 0, 1): those in `connected`, a Set of keys, first;
 * what lies ahead before what lies aside. null if there is nothing that way.
 */
export function nearestThatWay(from, others, direction, connected) {
  const ahead = others.flatMap((each) => {
    const [dx, dy] = [each.place.x - from.x, each.place.y - from.y];
    const far = dx * direction.x + dy * direction.y;
    const aside = Math.abs(dx * direction.y) + Math.abs(dy * direction.x);
    return far > 1 ? [{ ...each, aside: aside / far, cost: far + 2 * aside }] : [];
  });
  const nearest = (found) => found.reduce((best, each) => (best && best.cost <= each.cost ? best : each), null);
  const isConnected = ({ key }) => connected.has(key);
  const before = ahead.filter(({ aside }) => aside <= 2);
  return nearest(ahead.filter(isConnected).filter(({ aside }) => aside <= 4)) ?? nearest(before) ?? nearest(ahead);
}

// -- edges

const TOP = { x: 0, y: -1 };
const BOTTOM = { x: 0, y: 1 };
const LEFT = { x: -1, y: 0 };
const RIGHT = { x: 1, y: 0 };

/** The sides at which an edge leaves one node and enters the other. */
function sides(from, to) {
  const [across, down] = [to.x - from.x, to.y - from.y];
  const upright = down > 0 ? [BOTTOM, TOP] : [TOP, BOTTOM];
  const level = across > 0 ? [RIGHT, LEFT] : [LEFT, RIGHT];
  if (Math.abs(across) < NODE.width) return upright;
  if (Math.abs(down) < 1.4 * NODE.height) return level;
  return Math.abs(down) > 0.6 * Math.abs(across) ? upright : level;
}

/** Where each end is on its side: the ends at one side of a node stand in the order of what they lead to. */
function ports(edges, ends) {
  const atSide = new Map();
  edges.forEach(({ from, to }, at) => {
    for (const [end, node, other] of [[0, from, to], [1, to, from]]) {
      const side = ends[at][end];
      const name = `${node.key} ${side.x} ${side.y}`;
      if (!atSide.has(name)) atSide.set(name, { node, side, found: [] });
      atSide.get(name).found.push({ at, end, towards: side.x === 0 ? other.place.x : other.place.y });
    }
  });
  const placed = edges.map(() => []);
  for (const { node: { place }, side, found } of atSide.values()) {
    found.sort((one, other) => one.towards - other.towards || one.at - other.at || one.end - other.end);
    const isUpright = side.x === 0;
    const step = Math.min((0.8 * (isUpright ? NODE.width : NODE.height)) / found.length, isUpright ? 24 : 14);
    found.forEach(({ at, end }, index) => {
      const shift = (index - (found.length - 1) / 2) * step;
      placed[at][end] = {
        x: place.x + side.x * NODE.width / 2 + (isUpright ? shift : 0),
        y: place.y + side.y * NODE.height / 2 + (isUpright ? 0 : shift),
      };
    });
  }
  return placed;
}

function curve([start, stop], [leaves, enters], isLoop) {
  const end = { x: stop.x + enters.x * (ARROW + SPACE), y: stop.y + enters.y * (ARROW + SPACE) };
  const reach = (side) => (isLoop ? 70 : Math.max(24, Math.abs((end.x - start.x) * side.x + (end.y - start.y) * side.y) / 2));
  return [start,
    { x: start.x + leaves.x * reach(leaves), y: start.y + leaves.y * reach(leaves) },
    { x: end.x + enters.x * reach(enters), y: end.y + enters.y * reach(enters) },
    end];
}

/** The `d` of a line that leads from one place, of a node or a point, to another while an edge is looked for. */
export function lead(from, to) {
  const reach = Math.max(24, Math.abs(to.y - from.y) / 2);
  return `M${text(from)}C${text({ x: from.x, y: from.y + reach })} ${text({ x: to.x, y: to.y - reach })} ${text(to)}`;
}

function onCurve(points, share) {
  const rest = 1 - share;
  const weights = [rest ** 3, 3 * rest ** 2 * share, 3 * rest * share ** 2, share ** 3];
  const along = (axis) => points.reduce((sum, point, index) => sum + weights[index] * point[axis], 0);
  return { x: along("x"), y: along("y") };
}

const text = ({ x, y }) => `${Math.round(x * 10) / 10} ${Math.round(y * 10) / 10}`;

function arrow([, , , tip], side) {
  const point = { x: tip.x - side.x * ARROW, y: tip.y - side.y * ARROW };
  const half = { x: (side.y * ARROW) / 2, y: (side.x * ARROW) / 2 };
  return `M${text(point)}L${text({ x: tip.x + half.x, y: tip.y + half.y })}L${text({ x: tip.x - half.x, y: tip.y - half.y })}Z`;
}

/**
 * The routes of all edges: {line, arrow, place, bounds, ends} each, the first two as the `d` of a path, the place that of the
 * label, with its width, a box around all of it, and the ends of the line. `nodes`: [{key, place}]; `edges`: [{key, from, to,
 * label}], the ends being nodes. `shares`, a Map by the edge's key, says where on its curve each label was; what it lacks is put
 * where the label is over no node and no other.
 */
export function routes(nodes, edges, shares) {
  const ends = edges.map(({ from, to }) => (from === to ? [RIGHT, RIGHT] : sides(from.place, to.place)));
  const placed = ports(edges, ends);
  const curves = edges.map(({ from, to }, at) => curve(placed[at], ends[at], from === to));
  const width = ({ label }) => Math.min(LABEL.width, 20 + 8 * label.length);
  const labelAt = (at, share) => ({ ...onCurve(curves[at], share), width: width(edges[at]) });
  const taken = new Cells();
  if (edges.some(({ key }) => !shares.has(key))) {
    for (const { place } of nodes) taken.add(boxOfNode(place));
    edges.forEach(({ key }, at) => shares.has(key) && taken.add(boxOfLabel(labelAt(at, shares.get(key)))));
  }
  return edges.map((edge, at) => {
    if (!shares.has(edge.key)) {
      const share = SHARES.find((each) => !taken.has(boxOfLabel(labelAt(at, each)))) ?? SHARES[0];
      shares.set(edge.key, share);
      taken.add(boxOfLabel(labelAt(at, share)));
    }
    const [start, first, second, end] = curves[at];
    const place = labelAt(at, shares.get(edge.key));
    return {
      line: `M${text(start)}C${text(first)} ${text(second)} ${text(end)}`,
      arrow: arrow(curves[at], ends[at][1]),
      place,
      bounds: around([boxOfLabel(place), ...curves[at].map(({ x, y }) => ({ left: x, top: y, right: x, bottom: y }))]),
      ends: [start, end],
    };
  });
}

/** The routes once the nodes of `moved`, which has their keys, were moved; `before` are those of the same edges until then. */
export function movedRoutes({ nodes, edges }, shares, moved, before) {
  const beside = (keys) => new Set(edges.flatMap(({ from, to }) => (keys.has(from.key) || keys.has(to.key) ? [from.key, to.key] : [])));
  const at = (keys) => edges.flatMap(({ from, to }, index) => (keys.has(from.key) || keys.has(to.key) ? [index] : []));
  // The ends at a side stand in an order, so what leads to a moved node moves its neighbours' others as well.
  const near = beside(moved);
  const changed = new Set(at(near));
  const looked = at(beside(near));
  const found = [...before];
  routes(nodes, looked.map((index) => edges[index]), shares).forEach((route, place) => {
    const index = looked[place];
    if (changed.has(index) && route.line !== before[index].line) found[index] = route;
  });
  return found;
}

/** Boxes by the cells of a grid, so that only those nearby are looked at. */
class Cells {
  #cells = new Map();

  *#names(box) {
    for (let x = Math.floor(box.left / 200); x <= Math.floor(box.right / 200); x += 1) {
      for (let y = Math.floor(box.top / 200); y <= Math.floor(box.bottom / 200); y += 1) yield `${x} ${y}`;
    }
  }

  add(box) {
    for (const name of this.#names(box)) {
      if (!this.#cells.has(name)) this.#cells.set(name, []);
      this.#cells.get(name).push(box);
    }
  }

  has(box) {
    return [...this.#names(box)].some((name) => this.#cells.get(name)?.some((each) => touches(each, box)));
  }
}

// Charts of bars, with the same numbers as a table.

import { details, table } from "./components.js";
import { h, svg, uniqueId } from "./dom.js";

const HEIGHT = 180;
const BELOW = 24;
const LEFT = 44;
// Pixels that a label below the bars needs.
const LABEL = 84;

/** The lowest round number that isn't below `most`, and its half: what the axis names. */
function axis(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(most, 1)));
  const top = [1, 2, 4, 6, 8, 10].map((times) => times * power).find((each) => each >= most);
  return top >= 2 ? [top, top / 2, 0] : [top, 0];
}

/**
 * A chart of stacked bars with a table of its numbers. `bars`: [{label, values: [number, ...]}]; `series`: a name for each
 * of the values, drawn from below in the classes `series-0`, `series-1`, ...
 */
export function barChart(title, series, bars, { first = "When" } = {}) {
  const wide = Math.min(48, Math.max(8, Math.floor(640 / Math.max(bars.length, 1))));
  const width = LEFT + Math.max(bars.length * wide, 240) + LABEL;
  const ticks = axis(Math.max(...bars.map((bar) => sum(bar.values)), 0));
  const y = (value) => 8 + HEIGHT * (1 - value / ticks[0]);
  const id = uniqueId("chart");
  const every = Math.ceil(LABEL / wide);
  const drawn = svg("svg", { width, height: 8 + HEIGHT + BELOW, role: "img", "aria-labelledby": id, class: "chart" },
    svg("title", { id }, title),
    ticks.map((tick) => [
      svg("line", { x1: LEFT, x2: width - LABEL + 8, y1: y(tick), y2: y(tick), class: "tick" }),
      svg("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, String(tick)),
    ]),
    bars.map((bar, at) => {
      let below = 0;
      const x = LEFT + at * wide;
      return svg("g", {},
        svg("title", {}, `${bar.label}: ${bar.values.map((value, each) => `${value} ${series[each]}`).join(", ")}`),
        bar.values.map((value, each) => {
          below += value;
          const height = (HEIGHT * value) / ticks[0];
          return svg("rect", { x: x + 1, y: y(below), width: wide - 2, height, class: `series-${each}` });
        }),
        at % every === 0 && svg("text", { x, y: 8 + HEIGHT + 17 }, bar.label));
    }));
  return h("figure", { class: "chart-figure" },
    h("figcaption", { class: "legend" }, series.map((name, each) => h("span", { class: `series-${each}` }, name))),
    h("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": `${title}, as a drawing` }, drawn),
    details("The same as a table", table(title, [
      [first, (bar) => bar.label],
      ...series.map((name, each) => [name, (bar) => String(bar.values[each]), { number: true }]),
    ], bars)));
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

// The two parts of the uncertainty along the only parameter of a study, one above the other.
import { axisOf, scaleOf } from "./axes.js";
import { colour } from "./colours.js";
import { element } from "./elements.js";

const HEIGHT = 220;

/** Draw both parts along one parameter. */
export function parts(curve) {
  const { axis, epistemic, aleatoric } = curve;
  const total = epistemic.map((part, k) => (part === null ? null : part + aleatoric[k]));
  const plot = element("div", { class: "plot" });
  const place = element("div", { class: "chart" },
    element("h3", {}, "Uncertainty about the next answer", element("span", { class: "muted" }, " (variance)")), plot,
    element("p", { class: "muted" }, "Lower area: aleatoric, which stays. Upper area: epistemic, which more answers reduce."));
  const top = Math.max(...total.filter((value) => value !== null), 1e-6);
  const draw = () => new uPlot({
    width: plot.clientWidth || 320, height: HEIGHT, legend: { show: false }, cursor: { y: false, points: { show: false } },
    scales: { x: scaleOf(axis), y: { auto: false, range: () => [0, 1.1 * top] } },
    axes: [axisOf(axis, 2), { ...axisOf({ names: [], log: false }, 3), grid: { stroke: () => colour("--line"), width: 1 } }],
    series: [{},
      { stroke: () => colour("--accent"), width: 2, fill: () => colour("--band"), points: { show: axis.discrete } },
      { stroke: () => colour("--second"), width: 2, fill: () => colour("--warn-ground"), points: { show: axis.discrete } }],
  }, [axis.at, total, aleatoric], plot);
  return { place, draw };
}

// A slice: the chance along one parameter, in its credible band.
import { axisOf, nearest, scaleOf } from "./axes.js";
import { colour } from "./colours.js";
import { element, folded, percent, table } from "./elements.js";
import * as marks from "./marks.js";

const HEIGHT = 190;
const RIM = { good: 1.075, bad: -0.075, undecided: -0.15 };

/** Draw a slice into a new element, which is returned with the chart. */
export function slice(curve, what) {
  const { axis } = curve;
  const readout = element("p", { class: "readout", "aria-hidden": "true" });
  const plot = element("div", { class: "plot" });
  const slider = element("input", {
    type: "range", class: "cursor visually-hidden", min: 0, max: axis.at.length - 1, value: nearest(axis, curve.best[0]),
    "aria-label": `Read the chart along ${axis.name}`,
  });
  const unit = axis.unit ? element("span", { class: "muted" }, ` (${axis.unit})`) : null;
  const place = element("div", { class: "chart" }, element("h3", {}, axis.name, unit), plot, slider, readout,
    folded("As a table", () => asTable(curve, what)));
  const say = (k) => {
    const text = words(curve, k);
    readout.textContent = text;
    slider.setAttribute("aria-valuetext", text);
    slider.value = k;
  };
  say(Number(slider.value));
  const draw = () => new uPlot(options(curve, plot.clientWidth || 280, say), data(curve), plot);
  return { place, slider, draw, move: (u, k) => u.setCursor({ left: u.valToPos(axis.at[k], "x"), top: HEIGHT / 2 }) };
}

function words(curve, k) {
  const { axis, expected, low, high } = curve;
  if (expected[k] === null) return `${axis.texts[k]}: not allowed`;
  return `${axis.texts[k]}: ${percent(expected[k])} (${percent(low[k])} to ${percent(high[k])})`;
}

function data(curve) {
  return [curve.axis.at, curve.low, curve.high, curve.expected];
}

function options(curve, width, say) {
  const { axis } = curve;
  const hidden = { paths: () => null, points: { show: false } };
  const line = axis.discrete
    ? { ...hidden }
    : { stroke: () => colour("--accent"), width: 2, points: { show: false } };
  return {
    width, height: HEIGHT, legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: { x: scaleOf(axis), y: { auto: false, range: () => [-0.2, 1.13] } },
    axes: [axisOf(axis, 2), percents()],
    series: [{}, axis.discrete ? hidden : edge(), axis.discrete ? hidden : edge(), line],
    bands: axis.discrete ? [] : [{ series: [2, 1], fill: () => colour("--band") }],
    hooks: {
      draw: [(u) => overlay(u, curve)],
      setCursor: [(u) => { if (u.cursor.left >= 0 && u.cursor.idx !== null) say(u.cursor.idx); }],
    },
  };
}

function edge() {
  return { width: 0, points: { show: false } };
}

function percents() {
  const at = [0, 0.25, 0.5, 0.75, 1];
  return {
    scale: "y", side: 3, size: 44, gap: 3, font: "12px system-ui, sans-serif", stroke: () => colour("--muted"),
    splits: () => at, values: () => at.map(percent), ticks: { show: false },
    grid: { stroke: () => colour("--line"), width: 1 },
  };
}

function overlay(u, curve) {
  const { ctx } = u;
  const scale = devicePixelRatio;
  const x = (value) => u.valToPos(value, "x", true);
  const y = (value) => u.valToPos(value, "y", true);
  if (curve.axis.discrete) {
    curve.axis.at.forEach((at, k) => {
      if (curve.expected[k] === null) return;
      const half = Math.min(14 * scale, (0.3 * u.bbox.width) / curve.axis.at.length);
      ctx.fillStyle = colour("--band");
      ctx.fillRect(x(at) - half, y(curve.high[k]), 2 * half, y(curve.low[k]) - y(curve.high[k]));
      ctx.fillStyle = colour("--accent");
      ctx.fillRect(x(at) - half, y(curve.expected[k]) - scale, 2 * half, 2 * scale);
    });
  }
  for (const [at, verdict, near] of curve.asked) marks.asked(ctx, x(at), y(RIM[verdict]), verdict, near, 0.85 * scale);
  marks.star(ctx, x(curve.best[0]), y(curve.best[1]), scale);
}

function asTable(curve, what) {
  const { axis } = curve;
  const step = Math.max(1, Math.floor((axis.at.length - 1) / 10));
  const rows = axis.at.map((_, k) => k).filter((k) => k % step === 0 && curve.expected[k] !== null);
  return table(`Chance ${what}`, [axis.name, "expected", "95% from", "to", "epistemic", "aleatoric"], rows.map((k) => [
    axis.texts[k], percent(curve.expected[k]), percent(curve.low[k]), percent(curve.high[k]),
    curve.epistemic[k].toFixed(3), curve.aleatoric[k].toFixed(3)]));
}

// Maps over two parameters: what is expected, how sure that is, and the two parts of the uncertainty.
import { axisOf, named, nearest, scaleOf, short } from "./axes.js";
import { colour, good, unsure } from "./colours.js";
import { digits, element, folded, percent, table } from "./elements.js";
import * as marks from "./marks.js";

const HEIGHT = 280;
const KINDS = [
  ["above", "Probability of reaching the level", "0 to 1", good],
  ["mean", "Expected value", "noise of one answer = 1", good],
  ["spread", "Uncertainty of the value", "standard deviation", unsure],
  ["epistemic", "Epistemic: more answers reduce it", "variance of the next answer", unsure],
  ["aleatoric", "Aleatoric: irreducible", "variance of the next answer", unsure],
];

/** Draw the maps; `say` shows what the cursor points at. */
export function maps(found, say) {
  const charts = [];
  const sliders = found.axes.map((axis, k) => element("input", {
    type: "range", class: "cursor visually-hidden", min: 0, max: axis.at.length - 1, value: nearest(axis, found.best[k]),
    "aria-label": `Read the maps at ${axis.name}`,
  }));
  const read = (i, j) => {
    const text = words(found, i, j);
    say(text);
    sliders.forEach((slider, k) => { slider.value = [i, j][k]; slider.setAttribute("aria-valuetext", text); });
  };
  const move = () => {
    const [i, j] = sliders.map((slider) => Number(slider.value));
    read(i, j);
    for (const u of charts) {
      u?.setCursor({ left: u.valToPos(found.axes[0].at[i], "x"), top: u.valToPos(found.axes[1].at[j], "y") }, false);
    }
  };
  sliders.forEach((slider) => slider.addEventListener("input", move));
  read(...sliders.map((slider) => Number(slider.value)));
  const share = (from) => {
    const { left, top } = from.cursor;
    if (left === undefined || left < 0) return;
    read(...found.axes.map((axis, k) => nearest(axis, from.posToVal(k ? top : left, k ? "y" : "x"))));
    for (const u of charts) if (u && u !== from) u.setCursor({ left, top }, false);
  };
  const made = KINDS.filter(([key]) => found.values[key]).map(([key, title, unit, shade], number) => {
    const values = found.values[key];
    const [low, high] = range(values, key);
    const plot = element("div", { class: "plot" });
    const place = element("div", { class: "chart" },
      element("h3", {}, title), plot,
      element("div", { class: shade === good ? "scale" : "scale unsure" }, element("span", {}, digits(low)), element("span", {}), element("span", {}, digits(high))),
      element("p", { class: "muted" }, unit));
    return { place, plot, draw: () => {
      charts[number] = new uPlot(options(found, values, [low, high], shade, plot.clientWidth || 280, share), [found.axes[0].limits, [null, null]], plot);
      return charts[number];
    } };
  });
  return { made, sliders, alternative: folded("As a table", () => asTable(found)) };
}

function words(found, i, j) {
  const { mean, spread, epistemic, aleatoric, above } = found.values;
  const where = `${found.axes[0].name} ${found.axes[0].texts[i]}, ${found.axes[1].name} ${found.axes[1].texts[j]}`;
  if (mean[j][i] === null) return `${where}: not allowed`;
  return `${where}: expected value ${digits(mean[j][i])} ± ${digits(spread[j][i])}, epistemic ${epistemic[j][i].toFixed(3)}, aleatoric ${aleatoric[j][i].toFixed(3)}${above ? `, probability of reaching the level ${percent(above[j][i])}` : ""}`;
}

function range(values, key) {
  if (key === "above") return [0, 1];
  const known = values.flat().filter((value) => value !== null);
  const low = key === "mean" || key === "spread" ? Math.min(...known) : 0;
  const high = Math.max(...known);
  return known.length ? (high - low > 1e-9 ? [low, high] : [low - 0.5, high + 0.5]) : [0, 1];
}

function options(found, values, ends, shade, width, share) {
  return {
    width, height: HEIGHT, legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { show: false } },
    scales: { x: scaleOf(found.axes[0]), y: scaleOf(found.axes[1]) },
    axes: [{ ...axisOf(found.axes[0], 2), ...named(found.axes[0]) }, { ...axisOf(found.axes[1], 3), ...named(found.axes[1]) }],
    series: [{}, { paths: () => null, points: { show: false } }],
    hooks: {
      drawClear: [(u) => cells(u, found, values, ends, shade)],
      draw: [(u) => overlay(u, found)],
      setCursor: [share],
    },
  };
}

function cells(u, found, values, [low, high], shade) {
  const [xs, ys] = found.axes.map((axis, k) => axis.edges.map((edge) => Math.round(u.valToPos(edge, k ? "y" : "x", true))));
  u.ctx.fillStyle = colour("--line"); // where nothing is allowed
  u.ctx.fillRect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  values.forEach((row, j) => row.forEach((value, i) => {
    if (value === null) return;
    u.ctx.fillStyle = shade((value - low) / (high - low));
    u.ctx.fillRect(xs[i], ys[j + 1], xs[i + 1] - xs[i], ys[j] - ys[j + 1]);
  }));
}

function overlay(u, found) {
  const scale = devicePixelRatio;
  for (const [x, y, verdict, near] of found.asked) {
    marks.asked(u.ctx, u.valToPos(x, "x", true), u.valToPos(y, "y", true), verdict, near, 0.85 * scale);
  }
  marks.star(u.ctx, u.valToPos(found.best[0], "x", true), u.valToPos(found.best[1], "y", true), scale);
}

function asTable(found) {
  const [x, y] = found.axes;
  const some = (axis) => axis.at.map((_, k) => k).filter((k) => k % Math.max(1, Math.ceil(axis.at.length / 6)) === 0);
  const { mean, spread } = found.values;
  const cell = (i, j) => (mean[j][i] === null ? "not allowed" : `${short(mean[j][i])} ± ${short(spread[j][i])}`);
  return table("Expected value ± standard deviation", [`${y.name} \\ ${x.name}`, ...some(x).map((i) => x.texts[i])],
    some(y).reverse().map((j) => [y.texts[j], ...some(x).map((i) => cell(i, j))]));
}

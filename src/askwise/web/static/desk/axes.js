// Parameters as axes of uPlot: natural units, logarithms, names of choices.
import { colour } from "./colours.js";

const FONT = "12px system-ui, sans-serif";

/** The scale of a parameter. */
export function scaleOf(axis) {
  return { time: false, auto: false, distr: axis.log ? 3 : 1, range: () => axis.limits };
}

/** The axis of a parameter; `side` as in uPlot, 2 below and 3 left. */
export function axisOf(axis, side) {
  const ticks = splits(axis);
  return {
    side, scale: side === 2 ? "x" : "y", font: FONT, stroke: () => colour("--muted"),
    grid: { show: false }, ticks: { stroke: () => colour("--line"), size: 4 }, gap: 3,
    size: side === 2 ? 28 : 48,
    ...(ticks && { splits: () => ticks.map(([at]) => at), values: () => ticks.map(([, text]) => text) }),
    ...(axis.log && { filter: (_, found) => found }),
    ...(!ticks && { values: (_, found) => found.map(short), incrs: axis.whole ? [1, 2, 5, 10, 20, 50, 100, 1000] : undefined }),
  };
}

/** The name and unit of a parameter beside its axis. */
export function named(axis) {
  return { label: axis.unit ? `${axis.name} (${axis.unit})` : axis.name, labelFont: FONT, labelSize: 18, labelGap: 0 };
}

/** Round numbers on a logarithmic axis, names of choices; undefined where uPlot finds its own. */
function splits(axis) {
  if (axis.names.length) {
    const every = Math.ceil(axis.names.length / 6);
    return axis.at.map((at, k) => [at, k % every ? "" : clipped(axis.names[k])]);
  }
  if (axis.whole && !axis.log && axis.at.length <= 10) return axis.at.map((at) => [at, short(at)]);
  if (!axis.log) return undefined;
  const [low, high] = axis.limits;
  const found = [];
  const wide = Math.log10(high / low) > 2.2;
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const part of wide ? [1] : [1, 2, 5]) {
      const at = part * 10 ** power;
      if (at >= low * 0.999 && at <= high * 1.001) found.push([at, short(at)]);
    }
  }
  return found.length > 1 ? found : [[low, short(low)], [high, short(high)]];
}

/** A number as people write it. */
export function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1000 && size < 1e6 && value % 100 === 0) return `${value / 1000}k`;
  return size < 1e-3 || size >= 1e6 ? value.toExponential(0) : String(Number(value.toPrecision(3)));
}

function clipped(name) {
  return name.length > 9 ? `${name.slice(0, 8)}…` : name;
}

/** The place in an axis of the value nearest to a position. */
export function nearest(axis, position) {
  const far = (at) => Math.abs(axis.log ? Math.log(at / position) : at - position);
  return axis.at.reduce((best, at, k) => (far(at) < far(axis.at[best]) ? k : best), 0);
}

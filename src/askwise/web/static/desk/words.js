// What the page says in words and tables.
import { digits, element, percent } from "./elements.js";

const at = (id) => document.getElementById(id);
const TITLES = [["name", "Person"], ["answers", "Answers"], ["undecided", "Can't decide"], ["skipped", "Skipped"],
  ["voided", "Voided"], ["seconds", "Median time"], ["fastest", "Fastest"], ["contradicting", "Contradictions"],
  ["lapse", "Without looking"], ["checks", "Checks"]];

/** The recommended setting, the hint and the checks. */
export function outlook(found) {
  const { best } = found;
  at("best").replaceChildren(...(best?.params ?? []).map(({ name, text }) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, text))));
  at("value").textContent = best ? `Expected value ${digits(best.mean)} ± ${digits(best.std, 2)}, in units of the noise of one answer.` : "";
  at("sentence").textContent = best ? best.sentence : `It takes ${found.needs} until there is a recommendation.`;
  at("against").textContent = best?.reference ? against(best) : "";
  at("short").textContent = found.short;
  at("short").className = found.trusted ? "verdict" : "verdict danger";
  at("hint").textContent = found.hint.slice(found.short.length).replace(/^: */, "").replace(/^./, (first) => first.toUpperCase());
  if (at("gain")) {
    at("gain").textContent = found.gain === null ? "–" : digits(found.gain, 2);
    at("regret").textContent = found.regret === null ? "–" : digits(found.regret, 2);
    at("unit").textContent = `In units of the noise of one answer: ${found.unit}.`;
  } else {
    for (const side of ["inside", "outside", "misclassified"]) at(side).textContent = found.level ? percent(found.level[side]) : "–";
    at("unit").textContent = found.level ? found.level.words : "";
  }
  at("unknown").textContent = found.unknown;
  at("checks").replaceChildren(...found.checks.map(check), ...(found.checks.length ? [] : [element("li", { class: "muted" }, "Nothing to check yet.")]));
}

function against(best) {
  const setting = best.reference.map(({ name, text }) => `${name} ${text}`).join(", ");
  const [middle, low, high] = best.difference;
  return `Reference: ${setting}. The probability that the recommended setting is really better is ${percent(best.better)}; `
    + `it leads by ${digits(middle, 2)} (95%: ${digits(low, 2)} to ${digits(high, 2)}).`;
}

function check({ title, flagged, detail }) {
  const badge = element("span", { class: `badge ${flagged ? "warn" : "good"}` }, flagged ? "look at this" : "fine");
  return element("li", {}, element("strong", {}, `${title} `, badge), detail);
}

/** Which parameters matter. */
export function importance(found) {
  const rows = found.each.flatMap(({ name, value, interval: [low, high] }) => [
    element("dt", {}, name), bar(value, low, high),
    element("dd", {}, `${percent(value)} `, element("span", { class: "muted" }, `(${percent(low)} to ${percent(high)})`))]);
  at("importance").replaceChildren(element("div", { class: "bars" }, element("dl", {}, ...rows)));
}

function bar(value, low, high) {
  const rect = (kind, width) => element("svg:rect", { class: kind, x: 0, y: 3, width: 100 * width, height: 10 });
  const line = element("svg:line", { class: "whisker", x1: 100 * low, x2: 100 * high, y1: 8, y2: 8 });
  const drawn = element("svg:svg", { viewBox: "0 0 100 16", preserveAspectRatio: "none", "aria-hidden": "true" }, rect("track", 1), rect("fill", value), line);
  return element("dd", { "aria-hidden": "true" }, drawn);
}

/** How well everybody answers. */
export function people(rows) {
  const known = TITLES.filter(([key]) => ["name", "answers", "checks"].includes(key) || rows.some((row) => row[key] || (key === "contradicting" && row[key] !== null)));
  const heads = known.map(([, title]) => element("th", { scope: "col" }, title));
  const cell = (row, key) => (key === "name"
    ? element("th", { scope: "row" }, row.name ?? "no name")
    : element("td", key === "checks" ? { class: "wrap" } : {}, ...shown(row, key)));
  const body = rows.map((row) => element("tr", {}, ...known.map(([key]) => cell(row, key))));
  at("people").replaceChildren(rows.length
    ? element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...body))
    : element("p", { class: "muted" }, "Nobody was asked yet."));
}

function shown(row, key) {
  const value = row[key];
  if (key === "checks") return checks(value);
  if (value === null) return ["–"];
  if (key === "seconds" || key === "fastest") return [`${digits(value, 2)} s`];
  if (key === "lapse") return [`${percent(value[0])} `, element("span", { class: "muted" }, `(${percent(value[1])} to ${percent(value[2])})`)];
  if (key === "contradicting") return [`${value} of ${row.answers}`];
  return [String(value)];
}

function checks(found) {
  const flagged = found.filter((one) => one.flagged);
  const list = (some) => some.map((one) => element("div", {}, `${one.title}: ${one.detail}`));
  if (flagged.length) return [element("span", { class: "badge warn" }, "look at this"), ...list(flagged)];
  if (!found.length) return ["–"];
  return [element("details", {}, element("summary", {}, "fine"), ...list(found))];
}

/** The counts at the top. */
export function counts(found) {
  for (const [key, value] of Object.entries(found)) {
    const place = document.querySelector(`[data-count="${key}"]`);
    if (place) place.textContent = value;
  }
}

// The experimenter's page about one study: fetches what has changed, and shows it.
import { onScheme } from "./colours.js";
import { element } from "./elements.js";
import { follow } from "./live.js";
import { maps } from "./maps.js";
import { parts } from "./parts.js";
import { slice } from "./slices.js";
import * as words from "./words.js";

const desk = document.getElementById("desk");
const pair = document.getElementById("pair");
const readout = document.getElementById("map-readout");
const shown = { slices: [], map: [] }; // charts by panel
let known = null; // the answers that the page shows
let curves = null;

class Refusal extends Error {}

async function get(path, more = {}) {
  const query = new URLSearchParams(location.search);
  for (const [name, values] of Object.entries(more)) for (const value of values) query.append(name, value);
  const response = await fetch(`${desk.dataset.base}/${path}?${query}`, { headers: { Accept: "application/json" } });
  const found = await response.json();
  if (!response.ok) throw new Refusal(found.error?.message ?? "The server does not answer.");
  return found;
}

/** Fetch and show one panel; what is missing or refused is said in its place. */
async function panel(name, path, show, more) {
  let problem = "";
  try {
    const found = await get(path, more);
    if (found.missing) problem = found.missing;
    else show(found);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    problem = error.message;
  }
  finish(name, problem);
}

function finish(name, problem = "") {
  for (const place of document.querySelectorAll(`[data-panel="${name}"]`)) {
    place.setAttribute("aria-busy", "false");
    place.classList.toggle("missing", problem !== "");
    place.querySelector(":scope > .refusal")?.remove();
    if (problem) place.append(element("p", { class: "refusal muted" }, problem));
  }
}

/** Put charts into a place, in place of those before; they follow its width. */
function put(name, place, charts, ...more) {
  shown[name].forEach(({ plot }) => plot?.destroy());
  place.replaceChildren(...charts.map((chart) => chart.place), ...more);
  shown[name] = charts.map((chart) => ({ chart, plot: chart.draw() }));
}

function showSlices(found) {
  curves = found.curves;
  document.getElementById("what").textContent = found.what;
  const made = curves.map((curve) => slice(curve, found.what));
  put("slices", document.getElementById("slices"), made);
  made.forEach((one, k) => one.slider.addEventListener("input", () => one.move(shown.slices[k].plot, Number(one.slider.value))));
  const chosen = pair.value || JSON.stringify(found.pair);
  pair.replaceChildren(...found.pairs.map((names) => element("option", { value: JSON.stringify(names) }, names.join(" × "))));
  const options = [...pair.options].map((option) => option.value);
  const turned = JSON.stringify([...JSON.parse(chosen)].reverse());
  pair.value = options.includes(chosen) ? chosen : turned;
  document.getElementById("pair-label").hidden = found.pairs.length < 2;
}

async function showMap() {
  if (curves === null) { finish("map", document.querySelector('[data-panel="slices"] > .refusal').textContent); return; }
  if (curves.length < 2) {
    put("map", document.getElementById("maps"), [parts(curves[0])]);
    readout.textContent = "";
    document.getElementById("maps-title").textContent = "Epistemic and aleatoric uncertainty";
    finish("map");
    return;
  }
  await panel("map", "map", (found) => {
    document.getElementById("held").textContent = found.held ? `Other parameters ${found.held}.` : "";
    const { made, sliders, alternative } = maps(found, (text) => { readout.textContent = text; });
    put("map", document.getElementById("maps"), made, element("div", { class: "table" }, alternative));
    document.getElementById("cursors").replaceChildren(...sliders);
  }, { over: JSON.parse(pair.value) });
}

async function update() {
  const live = await get("live");
  words.counts(live.counts);
  const state = document.getElementById("state");
  state.textContent = live.paused ? "Paused" : "Running";
  state.className = `badge ${live.paused ? "warn" : "good"}`;
  document.getElementById("start")?.toggleAttribute("hidden", live.counts.answered > 0);
  if (live.key === known) return;
  await panel("slices", "slices", showSlices);
  await showMap();
  await panel("outlook", "outlook", words.outlook);
  await panel("importance", "importance", words.importance);
  await panel("people", "people", words.people);
  known = live.key;
  desk.dataset.shown = live.counts.answered;
}

function redraw() {
  for (const charts of Object.values(shown)) charts.forEach(({ plot }) => plot.redraw());
}

function resize() {
  for (const charts of Object.values(shown)) {
    charts.forEach(({ plot }) => plot.setSize({ width: plot.root.parentElement.clientWidth, height: plot.height }));
  }
}

const live = document.getElementById("live");
follow(`${desk.dataset.api}/events`, update, (text, on) => {
  live.textContent = text;
  live.dataset.on = on ? "yes" : "no";
});
pair.addEventListener("change", showMap);
onScheme(redraw);
let resizing = null;
addEventListener("resize", () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(resize); });

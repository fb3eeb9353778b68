// Colours of charts: those of the page, read when they are drawn, and two maps that the colour-blind can read,
// as in the figures: "cividis" for what is good (Nunez et al. 2018), purple for what is uncertain.
const GOOD = ["00224e", "123570", "3b496c", "575d6d", "707173", "8a8678", "a59c74", "c3b369", "e1cc55", "fee838"].map(parts);
const UNSURE = ["fcfbfd", "f1eff6", "dfdfed", "c6c7e1", "acaad1", "908dc2", "796eb2", "65479e", "51228d", "3f007d"].map(parts);

function parts(hex) {
  return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** The value of a custom property of the page, such as --ink. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The colour of a share between 0 and 1: of what is good, or of what is uncertain. */
export const good = (share) => mixed(GOOD, share);
export const unsure = (share) => mixed(UNSURE, share);

function mixed(stops, share) {
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const below = Math.min(Math.floor(place), stops.length - 2);
  return `rgb(${stops[below].map((part, k) => Math.round(part + (stops[below + 1][k] - part) * (place - below))).join(",")})`;
}

/** Call back whenever the system changes between light and dark. */
export function onScheme(redraw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

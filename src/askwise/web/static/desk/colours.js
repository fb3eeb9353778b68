// Colours of charts: those of the page, read when they are drawn, and the map "cividis", which the
// colour-blind can read (Nunez et al. 2018).
const STOPS = ["00224e", "123570", "3b496c", "575d6d", "707173", "8a8678", "a59c74", "c3b369", "e1cc55", "fee838"]
  .map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));

/** The value of a custom property of the page, such as --ink. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The colour of a share between 0 and 1. */
export function cividis(share) {
  const place = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1);
  const below = Math.min(Math.floor(place), STOPS.length - 2);
  const mixed = STOPS[below].map((part, k) => Math.round(part + (STOPS[below + 1][k] - part) * (place - below)));
  return `rgb(${mixed.join(",")})`;
}

/** Call back whenever the system changes between light and dark. */
export function onScheme(redraw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

// What the page was given: its settings and its words.
export const given = document.body.dataset;
const words = JSON.parse(given.words);

/** The text of this key, with values in the place of {names}. */
export function say(key, values = {}) {
  return words[key].replace(/\{(\w+)\}/g, (all, name) => (name in values ? String(values[name]) : all));
}

/** Shown to everybody until something else is, or for a while. */
let hiding;
export function notice(text, seconds = 0) {
  const place = document.getElementById("notice");
  clearTimeout(hiding);
  if (place.textContent !== text) place.textContent = text;
  if (seconds) hiding = setTimeout(() => (place.textContent = ""), 1000 * seconds);
}

/** Told to screen readers only. */
export function speak(text) {
  document.getElementById("spoken").textContent = text;
}

/** An element with properties, attributes that have a dash or begin with "role", and children. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role" || key === "class") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

// Small helpers to build elements; text is always text, never HTML.

/** An element with attributes and children (elements or text). */
export function element(name, attributes = {}, ...children) {
  const made = name.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** A table: the first column names the rows. */
export function table(caption, heads, rows) {
  const cells = (row) => row.map((cell, k) => element(k ? "td" : "th", k ? {} : { scope: "row" }, cell));
  return element("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": caption },
    element("table", {},
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells(row))))));
}

/** Details whose content is made when they are opened. */
export function folded(summary, make) {
  const made = element("details", {}, element("summary", {}, summary));
  made.addEventListener("toggle", () => {
    if (made.open && made.children.length === 1) made.append(make());
  });
  return made;
}

export const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)}%`;
export const digits = (value, count = 3) => String(Number(value.toPrecision(count)));

// A new study: checked by the server as one types, which writes nothing.
const form = document.getElementById("new");
const problem = document.getElementById("problem");
const parameters = document.getElementById("parameters");
const text = document.getElementById("toml");
const lines = document.getElementById("lines");
const WAIT = 350; // milliseconds without a key
let timer = null;
let asked = 0;

function later() {
  clearTimeout(timer);
  timer = setTimeout(check, WAIT);
}

async function check() {
  const number = ++asked;
  try {
    const response = await fetch(form.dataset.check, { method: "POST", body: new FormData(form), headers: { Accept: "application/json" } });
    const found = await response.json();
    if (number === asked) show(response.ok ? found : { problem: found.error.message });
  } catch {
    if (number === asked) show({ problem: "The server does not answer; what you write is still here." });
  }
}

function show({ problem: words, field, line, toml }) {
  problem.textContent = words ? words : "This is a study that can be created.";
  problem.className = words ? "notice" : "notice ok";
  for (const input of form.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-describedby");
  }
  const wrong = form.elements.mode.value === "toml" ? text : field && form.elements[field];
  if (words && wrong instanceof Element) {
    wrong.setAttribute("aria-invalid", "true");
    wrong.setAttribute("aria-describedby", "problem");
  }
  if (toml !== undefined) document.getElementById("preview").textContent = toml;
  number(form.elements.mode.value === "toml" ? line : null);
}

/** Numbers beside the lines, with one of them marked. */
function number(bad) {
  const count = text.value.split("\n").length;
  lines.replaceChildren();
  for (let k = 1; k <= count; k++) {
    const mark = document.createElement("span");
    mark.textContent = k;
    if (k === bad) mark.className = "bad";
    lines.append(mark, "\n");
  }
  lines.scrollTop = text.scrollTop;
}

function add() {
  const next = 1 + Math.max(-1, ...[...parameters.querySelectorAll("[name$='.name']")].map((one) => parseInt(one.name, 10)));
  const made = document.getElementById("row").content.cloneNode(true);
  for (const input of made.querySelectorAll("[name]")) input.name = input.name.replace("N", next);
  parameters.append(made);
  removable();
  parameters.lastElementChild.querySelector("input").focus();
}

function removable() {
  const rows = [...parameters.children];
  rows.forEach((row) => { row.querySelector(".remove").hidden = rows.length < 2; });
}

parameters.addEventListener("click", (event) => {
  if (!event.target.matches(".remove")) return;
  event.target.closest("fieldset").remove();
  removable();
  document.getElementById("add").focus();
  later();
});
document.getElementById("add").hidden = false;
document.getElementById("add").addEventListener("click", add);
text.addEventListener("scroll", () => { lines.scrollTop = text.scrollTop; });
form.addEventListener("input", later);
form.addEventListener("change", later);
number(null);
removable();

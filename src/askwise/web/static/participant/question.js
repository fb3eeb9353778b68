// One question on the screen, from loading what it shows to the press that answers it.
import { look } from "./looks.js";
import { way } from "./ways.js";
import { element, given, say, speak } from "./words.js";

const BLIND = 250; // milliseconds in which nobody can have seen a new question: a double click ends in them
const SLOW = 350; // milliseconds of loading before the page says so
const stage = document.getElementById("stage");
let now = null; // the question that takes keys
let latest = null; // what was last to be shown

/** Show a question once all of it is loaded; the answer, as {told, seconds}. Anything else that is shown ends it. */
export async function show(shown, number) {
  const looks = shown.looks.map((one, index) => look(one, shown.labels[index]));
  const answered = deferred();
  const here = { keys: {}, looks, from: Infinity };
  const answer = (told, pressed) => {
    const time = performance.now();
    if (now !== here || time < here.from + BLIND) return;
    now = null;
    pressed.classList.add("pressed");
    section.classList.add("pressed-one");
    section.setAttribute("aria-busy", "true");
    answered.resolve({ told, seconds: Math.round(time - here.from) / 1000 });
  };
  const made = way(shown.labels, looks, answer);
  here.keys = made.keys;
  const title = element("h1", { textContent: given.question, tabIndex: -1 });
  const section = (latest = element("section", { class: "question waiting", inert: true }, title));
  if (shown.again) section.append(element("p", { class: "again", textContent: say("undoing") }));
  section.append(...made.parts, element("div", { class: "answers" }, ...made.buttons));
  stage.append(section); // hidden, since frames load only inside the page
  await settled(looks.map((one) => one.ready));
  if (latest !== section) {
    section.remove();
    return answered.promise; // which nobody awaits any more
  }
  replaceAll(section);
  if (looks.some((one) => one.failed)) {
    failed(section, answered);
    return answered.promise;
  }
  now = here;
  title.focus({ preventScroll: true });
  scrollTo(0, 0);
  speak(say("number", { number }));
  await new Promise(requestAnimationFrame);
  fit();
  here.from = performance.now();
  section.dataset.ready = number;
  return answered.promise;

  async function settled(all) {
    const slow = setTimeout(() => {
      stage.querySelector(".question:not(.waiting)")?.classList.add("slow");
      speak(say("loading"));
    }, SLOW);
    const results = await Promise.allSettled(all);
    clearTimeout(slow);
    results.forEach((result, index) => (looks[index].failed = result.status === "rejected"));
  }
}

/** Hide the sheets and the question before, and show this one. */
function replaceAll(section) {
  for (const other of [...stage.children]) {
    if (other === section) continue;
    if (other.classList.contains("question")) other.remove();
    else other.hidden = true;
  }
  section.classList.remove("waiting");
  section.classList.add("fresh");
  section.inert = false;
}

/** Nobody may answer what they have not seen: offer to load it again. */
function failed(section, answered) {
  for (const button of section.querySelectorAll("button")) button.disabled = true;
  const again = element("button", { type: "button", class: "main", textContent: say("again") });
  again.addEventListener("click", () => answered.resolve(null));
  const answers = section.querySelector(".answers");
  answers.replaceChildren(element("p", { role: "alert", textContent: say("unloadable") }), again);
}

/** Show one of the sheets, and no question. */
export function sheet(id) {
  now = latest = null;
  for (const other of [...stage.children]) {
    if (other.classList.contains("question")) other.remove();
    else other.hidden = other.id !== id;
  }
  document.querySelector(`#${id} h1`).focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** Take no answer to the question that is shown. */
export function leave() {
  now = null;
}

/** Whether somebody is looking at a question, not waiting for one. */
export const isWaiting = () => now !== null;

addEventListener("keydown", (event) => {
  if (!now || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const play = now.looks[Number(event.key) - 1]?.play;
  const action = now.keys[key] ?? play;
  if (!action || (key === "ArrowDown" && isTall())) return;
  event.preventDefault();
  action();
});

/** Whether there is something to scroll to: then the arrow down does that, and answers nothing. */
const isTall = () => document.documentElement.scrollHeight > document.documentElement.clientHeight;

/** Name no key that does something else. */
function fit() {
  stage.querySelector(".question:not(.waiting)")?.classList.toggle("tall", isTall());
}
addEventListener("resize", fit);

// A click into a frame takes the keys away from the page, for nothing if the frame has no use for them. Who came by
// Tab is left there, or could not get past it.
let tabbed = -Infinity;
addEventListener("keydown", (event) => {
  if (event.key === "Tab") tabbed = performance.now();
}, true);
addEventListener("blur", () => setTimeout(() => {
  const frame = document.activeElement;
  if (!frame?.matches("#stage iframe.only-seen") || performance.now() < tabbed + 500) return;
  frame.closest("section").querySelector("h1").focus({ preventScroll: true });
}));

function deferred() {
  const made = {};
  made.promise = new Promise((resolve) => (made.resolve = resolve));
  return made;
}

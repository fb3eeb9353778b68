// The ways to answer: what each puts on the screen, and which keys it takes.
import { ranking } from "./ranking.js";
import { element, given, say } from "./words.js";

const right = document.documentElement.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
const left = right === "ArrowRight" ? "ArrowLeft" : "ArrowRight";
const SIGN = { ArrowLeft: "\u2190", ArrowRight: "\u2192", ArrowDown: "\u2193" };

/** Cards with a button each; `word` is what it says, `told` what a press of it means. */
function choice(word, told) {
  return (labels, looks, answer) => {
    const node = element("div", { class: "options" });
    node.dataset.count = looks.length;
    const keys = {};
    labels.forEach((label, index) => {
      const arrow = looks.length === 2 ? [left, right][index] : null;
      const take = button("take", say(word, { option: label }), arrow ? SIGN[arrow] : label);
      const card = element("article", { class: "card", "aria-label": say("option", { option: label }) }, looks[index].node, take);
      const press = () => answer(told(index), card);
      take.addEventListener("click", (event) => {
        event.stopPropagation();
        if (event.detail < 2) press(); // not the second of a double click
      });
      if (looks[index].takes) {
        card.classList.add("takes");
        card.addEventListener("click", (event) => event.detail < 2 && press());
      }
      keys[label.toLowerCase()] = press;
      if (arrow) keys[arrow] = press;
      node.append(card);
    });
    return { parts: [node], keys, buttons: [] };
  };
}

function yesNo(labels, looks, answer) {
  const node = element("div", { class: "options" }, element("article", { class: "card" }, looks[0].node));
  node.dataset.count = 1;
  const no = button("big", say("no"), SIGN[left]), yes = button("big", say("yes"), SIGN[right]);
  const keys = {};
  for (const [one, value, names] of [[no, false, [left, "n"]], [yes, true, [right, "y"]]]) {
    const press = () => answer({ answer: value }, one);
    one.addEventListener("click", (event) => event.detail < 2 && press());
    for (const name of names) keys[name] = press;
  }
  return { parts: [node], keys, buttons: [no, yes] };
}

function order(labels, looks, answer) {
  const list = ranking(labels, looks);
  const submit = element("button", { type: "button", class: "main", textContent: say("submit") });
  submit.addEventListener("click", (event) => event.detail < 2 && answer({ ranking: list.order() }, submit));
  const help = element("p", { class: "again", textContent: say("ranking") });
  const first = element("div", { class: "ends" }, element("span", { textContent: say("first") }));
  const last = element("div", { class: "ends" }, element("span", { textContent: say("last") }));
  return { parts: [help, first, list.node, last], keys: {}, buttons: [submit] };
}

const WAYS = {
  yes_no: yesNo,
  better: choice("better", (index) => ({ answer: index })),
  best: choice("best", (index) => ({ winner: index })),
  worst: choice("worst", (index) => ({ worst: index })),
  ranking: order,
};

/** {parts, keys, buttons} of the way in which this study is answered; `answer(told, pressed)` is called once. */
export function way(labels, looks, answer) {
  const made = WAYS[given.way](labels, looks, answer);
  if (given.undecided) {
    const undecided = button("quiet", say("undecided"), given.way === "ranking" ? "" : SIGN.ArrowDown);
    undecided.classList.add("down");
    const press = () => answer({ answer: null }, undecided);
    undecided.addEventListener("click", (event) => event.detail < 2 && press());
    if (given.way !== "ranking") made.keys.ArrowDown = press;
    made.buttons.push(undecided);
  }
  return made;
}

function button(kind, words, key) {
  const made = element("button", { type: "button", class: kind }, words);
  if (key) made.append(element("kbd", { textContent: key, "aria-hidden": "true" }));
  return made;
}

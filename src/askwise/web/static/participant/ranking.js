// Options put in order: by dragging, by buttons, or by arrow keys on a focused option.
import { element, say, speak } from "./words.js";

/** {node, order}: a list of cards, and the options in their order now. */
export function ranking(labels, looks) {
  const node = element("ol", { class: "ranking" });
  const cards = looks.map((shown, index) => card(index, labels[index], shown));
  node.append(...cards.map((one) => one.node));
  const order = () => [...node.children].map((item) => Number(item.dataset.option));
  const renumber = () => [...node.children].forEach((item, place) => {
    item.querySelector(".place").textContent = place + 1;
    const [up, down] = item.querySelectorAll(".moves button");
    up.disabled = place === 0;
    down.disabled = place === node.children.length - 1;
  });
  const moved = (item) => {
    renumber();
    const place = order().indexOf(Number(item.dataset.option)) + 1;
    speak(say("moved", { option: item.dataset.label, place, count: node.children.length }));
  };
  const shift = (item, by) => {
    const other = by < 0 ? item.previousElementSibling : item.nextElementSibling;
    if (!other) return;
    if (by < 0) other.before(item);
    else other.after(item);
    moved(item);
  };
  for (const { node: item, up, down } of cards) {
    for (const [button, by] of [[up, -1], [down, 1]]) {
      button.addEventListener("click", () => {
        shift(item, by);
        (button.disabled ? (by < 0 ? down : up) : button).focus();
      });
    }
    item.addEventListener("keydown", (event) => {
      const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      const focused = document.activeElement;
      shift(item, by);
      focused.focus();
    });
    drag(node, item, moved);
  }
  renumber();
  return { node, order };
}

function card(index, label, shown) {
  const up = element("button", { type: "button", textContent: "\u2191", "aria-label": say("up", { option: label }) });
  const down = element("button", { type: "button", textContent: "\u2193", "aria-label": say("down", { option: label }) });
  const place = element("span", { class: "place" });
  const node = element("li", { class: "card", "aria-label": say("option", { option: label }) }, place, shown.node, element("div", { class: "moves" }, up, down));
  node.dataset.option = index;
  node.dataset.label = label;
  return { node, up, down };
}

/** Follow the pointer, and change places with neighbours whose middle it has passed. */
function drag(list, item, moved) {
  let from = null;
  const follow = (event) => {
    if (from === null) return;
    item.style.transform = `translateY(${event.clientY - from}px)`;
    for (const other of list.children) {
      if (other === item) continue;
      const box = other.getBoundingClientRect(), middle = box.top + box.height / 2;
      const before = item.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_PRECEDING;
      if (before ? event.clientY < middle : event.clientY > middle) {
        const top = item.offsetTop;
        if (before) item.after(other); // the other one moves: what leaves the page for a moment loses the pointer
        else item.before(other);
        from += item.offsetTop - top; // stay under the pointer
        item.style.transform = `translateY(${event.clientY - from}px)`;
        break;
      }
    }
  };
  const drop = () => {
    if (from === null) return;
    from = null;
    item.style.transform = "";
    item.classList.remove("held");
    moved(item);
  };
  item.addEventListener("pointerdown", (event) => {
    if (event.target.closest("button") || event.button) return;
    from = event.clientY;
    item.setPointerCapture(event.pointerId);
    item.classList.add("held");
  });
  item.addEventListener("pointermove", follow);
  item.addEventListener("pointerup", drop);
  item.addEventListener("pointercancel", drop);
}

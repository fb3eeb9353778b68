// Options put in order: by dragging (by touch at the handle alone, so that a swipe scrolls), by buttons, or by arrow keys on a focused option.
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
  const handle = element("div", { class: "handle", title: say("ranking") }, place);
  const node = element("li", { class: "card", "aria-label": say("option", { option: label }) }, handle, shown.node, element("div", { class: "moves" }, up, down));
  node.dataset.option = index;
  node.dataset.label = label;
  return { node, up, down };
}

const EDGE = 56; // pixels from the top or bottom of the window, in which what is dragged scrolls the page
const SCROLL = 7; // pixels in each frame

/** Follow the pointer, and change places with neighbours whose middle it has passed. */
function drag(list, item, moved) {
  let from = null, pointer = null, at = 0, frame = 0;
  const follow = (event) => {
    if (from === null || event.pointerId !== pointer) return;
    at = event.clientY;
    place();
    frame ||= requestAnimationFrame(scroll);
  };
  const place = () => {
    item.style.transform = `translateY(${at - from}px)`;
    for (const other of list.children) {
      if (other === item) continue;
      const box = other.getBoundingClientRect(), middle = box.top + box.height / 2;
      const before = item.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_PRECEDING;
      if (before ? at < middle : at > middle) {
        const top = item.offsetTop;
        if (before) item.after(other); // the other one moves: what leaves the page for a moment loses the pointer
        else item.before(other);
        from += item.offsetTop - top; // stay under the pointer
        item.style.transform = `translateY(${at - from}px)`;
        break;
      }
    }
  };
  const scroll = () => {
    if (!list.isConnected) return; // another question came meanwhile
    const before = scrollY, { top, bottom } = list.getBoundingClientRect();
    // as far as the list goes: what is held makes the page longer
    if (at < EDGE && top < EDGE) scrollBy(0, -SCROLL);
    else if (at > innerHeight - EDGE && bottom > innerHeight - EDGE) scrollBy(0, SCROLL);
    if (scrollY !== before) {
      from -= scrollY - before;
      place();
    }
    frame = requestAnimationFrame(scroll);
  };
  const drop = (event) => {
    if (from === null || event.pointerId !== pointer) return;
    from = null;
    cancelAnimationFrame(frame);
    frame = 0;
    item.style.transform = "";
    item.classList.remove("held");
    moved(item);
  };
  item.addEventListener("pointerdown", (event) => {
    if (event.target.closest("button") || event.button || from !== null) return;
    if (event.pointerType !== "mouse" && !event.target.closest(".handle")) return; // a finger on the rest scrolls
    from = at = event.clientY;
    pointer = event.pointerId;
    item.setPointerCapture(pointer);
    item.classList.add("held");
  });
  item.addEventListener("pointermove", follow);
  item.addEventListener("pointerup", drop);
  item.addEventListener("pointercancel", drop);
}

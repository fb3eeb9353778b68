// What is shown of an option: one function for each kind, which makes an element and says when it is ready.
import { element, say, speak } from "./words.js";

const LATEST = 15000; // milliseconds after which a sound or film that has begun to load counts as ready

// in a piece of HTML: what people may want to type into, or to use by keys
const USED = /<(script|input|textarea|select|button|a|area|audio|video|details|iframe|object|embed)\b|tabindex|contenteditable/i;

/** {node, ready, play, takes}: the element; when it can be seen or heard; how to play it; whether a click on it chooses. */
export function look(shown, label) {
  const name = say("option", { option: label });
  const made = KINDS[shown.kind](shown, name, label);
  made.node.classList.add("look", shown.kind);
  return { ready: Promise.resolve(), play: null, takes: false, ...made };
}

const KINDS = {
  parameters(shown) {
    const rows = shown.rows.map((row) => {
      const line = element("div", {}, element("dt", { textContent: row.name }), element("dd", { textContent: row.value }));
      if (row.at !== null) line.append(element("progress", { max: 1, value: row.at, "aria-hidden": "true" }));
      if (!row.differs) line.className = "same";
      return line;
    });
    return { node: element("div", {}, list(rows)), takes: true };
  },

  text(shown) {
    return { node: element("div", {}, element("blockquote", { textContent: shown.text })), takes: true };
  },

  image(shown, name) {
    const image = element("img", { alt: name, draggable: false, src: shown.src });
    return { node: element("div", {}, image), ready: image.decode(), takes: true };
  },

  html(shown, name) {
    const frame = element("iframe", { title: name });
    frame.sandbox = "allow-scripts";
    const ready = new Promise((done) => frame.addEventListener("load", done, { once: true }));
    frame.src = shown.src;
    fetch(shown.src).then(async (answer) => {
      if (answer.ok && !USED.test(await answer.text())) frame.classList.add("only-seen");
    }).catch(() => {}); // then it keeps the keys
    return { node: element("div", {}, frame), ready };
  },

  audio(shown, name, label) {
    const sound = element("audio", { preload: "auto", src: shown.src });
    const player = controls(sound, label);
    return { node: element("div", {}, sound, player.node), ready: loaded(sound), play: player.play };
  },

  video(shown, name, label) {
    const film = element("video", { preload: "auto", playsInline: true, src: shown.src, "aria-label": name });
    const player = controls(film, label);
    film.addEventListener("click", player.play);
    return { node: element("div", {}, film, player.node), ready: loaded(film), play: player.play };
  },

  missing() {
    const node = element("div", { role: "alert", textContent: say("unloadable") });
    return { node, ready: Promise.reject(new Error("missing")) };
  },
};

function list(rows) {
  const made = element("dl");
  made.append(...rows);
  return made;
}

/** Ready to be played to the end; some browsers load nothing before the first tap, and say so. */
function loaded(media) {
  return new Promise((done, fail) => {
    for (const event of ["canplaythrough", "suspend"]) media.addEventListener(event, done, { once: true });
    media.addEventListener("error", () => fail(new Error("media")), { once: true });
    media.addEventListener("loadedmetadata", () => setTimeout(done, LATEST), { once: true });
    media.load();
  });
}

/** A button that plays and stops, a line that says which option plays, and how far it is. */
function controls(media, label) {
  const option = { option: label };
  const button = element("button", { type: "button", "aria-label": say("play", option) });
  const words = element("span", { textContent: say("play", option), "aria-hidden": "true" });
  const far = element("progress", { max: 1, value: 0, "aria-hidden": "true" });
  const node = element("div", { class: "player" }, button, words, far);
  const show = () => {
    const on = !media.paused;
    node.classList.toggle("on", on);
    button.setAttribute("aria-label", say(on ? "stop" : "play", option));
    words.textContent = say(on ? "playing" : "play", option);
    if (on) speak(say("playing", option));
  };
  const play = () => {
    if (!media.paused) {
      media.pause();
      media.currentTime = 0;
      return;
    }
    for (const other of document.querySelectorAll("audio, video")) {
      if (other !== media) other.pause();
    }
    media.currentTime = 0;
    media.play().catch(show);
  };
  for (const event of ["play", "pause", "ended"]) media.addEventListener(event, show);
  media.addEventListener("timeupdate", () => (far.value = media.duration ? media.currentTime / media.duration : 0));
  button.addEventListener("click", (event) => {
    event.stopPropagation();
    play();
  });
  return { node, play };
}

// loaded before they are needed; kept, so that they are not thrown away
let coming = [];

/** Load what may be shown next. */
export function preload(looks) {
  coming = looks.map((shown) => {
    if (shown.kind === "image") return element("img", { src: shown.src });
    if (shown.kind === "audio" || shown.kind === "video") return element(shown.kind, { preload: "auto", src: shown.src });
    return null;
  });
}

// The participants' page: asks, shows, tells, until the planned number of answers is reached.
import { look, preload } from "./looks.js";
import { isWaiting, leave, sheet, show } from "./question.js";
import { Refusal, post, tryPost, unsent } from "./server.js";
import { given, notice, say, speak } from "./words.js";

const by = (id) => document.getElementById(id);
const LOADED = ["image", "audio", "video", "html"];
const TWICE = 500; // milliseconds in which a second press belongs to the first
const AGAIN = 5000; // milliseconds between two looks whether a paused study goes on
// other windows of the same participant hear of answers, and move on as well
const windows = "BroadcastChannel" in self ? new BroadcastChannel(`askwise ${given.key}`) : null;
let turn = 0; // of what is shown: what belongs to an earlier turn is over
let rested = -1; // the number of answers after which the last break was taken
let undoing = false; // whether Undo says "Keep my answer"
let changed = -Infinity; // when it last changed what it says

/** Show where the participant is: a question, a break, a pause or the end. */
async function go(moment) {
  const mine = ++turn;
  bar(moment);
  if (!moment.noted) notice(say("elsewhere"), 6);
  if (moment.paused) return paused(mine);
  if (!moment.shown) return end(moment);
  if (moment.pause && !moment.shown.again && rested !== moment.answered) {
    rested = moment.answered;
    preload(moment.shown.looks);
    by("break-text").textContent = say("break_text", moment);
    sheet("break");
    await press("continue");
    if (mine !== turn) return;
    return ask("next"); // another window may have gone on during the break
  }
  const answering = show(moment.shown, moment.answered + (moment.shown.again ? 0 : 1));
  lookAhead(moment.shown);
  const answer = await answering;
  if (mine !== turn) return;
  if (answer === null) return ask("next");
  const { told, seconds } = answer;
  const sent = { question: moment.shown.id, seconds, again: moment.shown.again, ...told };
  unsent.keep(sent);
  await ask("answer", sent);
}

/** Send a request, and go where its answer leads. */
async function ask(path, body) {
  const mine = ++turn;
  leave();
  // until the answer is here, nobody knows what would be undone
  by("undo").disabled = by("finish").disabled = true;
  try {
    const moment = await post(path, body);
    if (path === "answer") {
      unsent.drop();
      windows?.postMessage("answered");
    }
    if (mine === turn) await go(moment);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (path === "answer") unsent.drop(); // the server will not take it, however often it is sent
    if (mine === turn) trouble(error.message);
  }
}

function bar(moment) {
  const { answered, planned } = moment, again = moment.shown?.again ?? false;
  by("bar").hidden = false;
  by("count").textContent = planned === null ? say("answered", moment) : say("progress", moment);
  by("progress").hidden = planned === null;
  by("progress").max = planned ?? 1;
  by("progress").value = answered;
  if (again !== undoing) changed = performance.now();
  undoing = again;
  by("undo").disabled = !answered && !again;
  by("undo").lastChild.textContent = say(again ? "keep" : "undo");
  by("finish").disabled = false;
  by("finish").hidden = planned !== null || !moment.shown || again || !answered;
}

function end(moment) {
  by("code").textContent = moment.code;
  by("completion").hidden = moment.code === null;
  by("more").hidden = moment.planned !== null;
  const [best] = moment.reveal;
  by("reveal").hidden = !best || best.kind === "missing";
  if (best && best.kind !== "missing") {
    by("reveal").querySelector(".look")?.remove();
    by("reveal").append(look(best, "").node);
  }
  sheet("end");
  speak(say("thanks"));
}

/** Wait until the study goes on, or somebody does something else; who does not look asks nothing of the server. */
async function paused(mine) {
  by("paused-title").textContent = say("paused");
  by("paused-text").textContent = say("paused_text");
  sheet("paused");
  for (;;) {
    await new Promise((done) => setTimeout(done, AGAIN));
    if (mine !== turn) return;
    const moment = document.hidden ? null : await tryPost("next", {});
    if (mine !== turn) return;
    if (moment && !moment.paused) return go(moment);
  }
}

function trouble(message) {
  by("paused-title").textContent = say("trouble");
  by("paused-text").textContent = message;
  sheet("paused");
}

/** While somebody thinks, load what may come next. */
async function lookAhead(shown) {
  if (shown.again || !shown.looks.some((one) => LOADED.includes(one.kind))) return;
  const coming = await tryPost("ahead", { question: shown.id });
  if (coming) preload(coming);
}

function press(id) {
  return new Promise((done) => by(id).addEventListener("click", done, { once: true }));
}

by("undo").addEventListener("click", (event) => {
  // not the second of a double click: by then the button says something else
  if (event.detail > 1 || performance.now() < changed + TWICE) return;
  ask(undoing ? "next" : "back");
});
by("retry").addEventListener("click", () => ask("next"));
by("finish").addEventListener("click", () => ask("end"));
by("more").addEventListener("click", () => ask("next"));
by("copy").addEventListener("click", async () => {
  await navigator.clipboard?.writeText(by("code").textContent).catch(() => {});
  by("copy").textContent = say("copied");
});
addEventListener("keydown", (event) => {
  if (event.key === "Backspace" && !event.repeat && isWaiting() && !by("undo").disabled) by("undo").click();
});
if (windows) windows.onmessage = () => isWaiting() && ask("next");
// come back by the back button: what is on the screen may be old
addEventListener("pageshow", (event) => event.persisted && !by("bar").hidden && ask("next"));

const kept = unsent.kept();
if (kept) {
  ask("answer", kept);
} else if (given.started) {
  ask("next");
} else {
  by("begin").disabled = false;
  by("begin").focus();
  await press("begin"); // nothing is asked, and so nothing recorded, of people who only look
  by("begin").disabled = true;
  ask("next");
}

// Requests that survive a lost connection: they are sent again until the server has answered.
import { given, notice, say } from "./words.js";

const FIRST = 400, LONGEST = 3000, PATIENCE = 60000; // milliseconds
const TRANSIENT = [408, 425, 429, 500, 502, 503, 504];

/** What the server refuses, in its own words. */
export class Refusal extends Error {}

/** The server's answer; asked again and again while there is no connection. Each request may arrive twice. */
export async function post(path, body = {}) {
  let wait = FIRST, lost = false;
  for (;;) {
    const response = await attempt(path, body);
    if (response && !TRANSIENT.includes(response.status)) {
      if (lost) notice(say("online"), 3);
      const read = await response.json().catch(() => null);
      if (response.ok && read !== null) return read;
      throw new Refusal(read?.error?.message ?? response.statusText);
    }
    lost = true;
    notice(say("offline"));
    await pause(wait);
    wait = Math.min(2 * wait, LONGEST);
  }
}

/** The server's answer if it comes at once; nothing otherwise. */
export async function tryPost(path, body) {
  const response = await attempt(path, body);
  return response?.ok ? response.json().catch(() => null) : null;
}

async function attempt(path, body) {
  const ending = new AbortController();
  const timer = setTimeout(() => ending.abort(), PATIENCE);
  try {
    return await fetch(`${given.api}/${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${given.pass}` },
      body: JSON.stringify(body),
      signal: ending.signal,
    });
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
  }
}

/** Wait, but not when the browser says that it is connected again. */
function pause(milliseconds) {
  return new Promise((done) => {
    const finish = () => {
      clearTimeout(timer);
      removeEventListener("online", finish);
      done();
    };
    const timer = setTimeout(finish, milliseconds);
    addEventListener("online", finish);
  });
}

// The answer that was given and has not arrived: kept until it has, even if the page is closed.
const KEY = `askwise ${given.key}`;

export const unsent = {
  keep(answer) {
    try {
      localStorage.setItem(KEY, JSON.stringify(answer));
    } catch { /* private windows may refuse; the answer is still sent */ }
  },
  kept() {
    try {
      return JSON.parse(localStorage.getItem(KEY));
    } catch {
      return null;
    }
  },
  drop() {
    try {
      localStorage.removeItem(KEY);
    } catch { /* as above */ }
  },
};

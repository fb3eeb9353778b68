// News of a study: at once after the first, then at most once in a few seconds.
const LEAST = 2000; // milliseconds between two updates, since each costs the server a second of work

/** Call `update` now and after every change; `say` gets the state of the connection. */
export function follow(address, update, say) {
  let last = -Infinity;
  let waiting = null;
  let running = false;
  let again = false;
  const run = async () => {
    waiting = null;
    if (running) { again = true; return; }
    running = true;
    last = performance.now();
    try { await update(); } finally { running = false; }
    if (again) { again = false; soon(); }
  };
  const soon = () => {
    waiting ??= setTimeout(run, Math.max(0, last + LEAST - performance.now()));
  };
  const source = new EventSource(address);
  source.onopen = () => say("live", true);
  source.onmessage = soon;
  source.onerror = () => say("reconnecting", false);
  addEventListener("pagehide", () => source.close());
}

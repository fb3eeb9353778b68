// A plug-in for jsPsych 8 whose trials are questions of a study on an askwise server.

const AGAIN = [429, 502, 503, 504]; // of a server or a proxy that may work in a moment
const PATIENCE = 60_000; // milliseconds to go on trying when the connection is lost

/** A study on a server, by a participant's link (https://.../p/TOKEN). */
export class Askwise {
  constructor(link) {
    [this.address, this.token] = link.split("/p/");
    this.coming = null; // the next question, if it came with the last answer
  }

  /** The next question; the previous one if it was not answered. */
  async ask() {
    const question = this.coming ?? (await this.send("ask", {}));
    this.coming = null;
    return question;
  }

  /** Record an answer: `{answer: 1}` to a duel, `{answer: true}` or `{winner: 2}`; `null` is "can't decide". */
  async tell(question, answer, seconds) {
    const told = await this.send("tell", { question: question.id, seconds, next: true, ...answer });
    this.coming = told.next;
    return told;
  }

  async send(what, body) {
    this.study ??= (await this.request("GET", "/whoami")).study;
    return this.request("POST", `/studies/${this.study}/${what}`, body);
  }

  // Every request may be sent again: a question that is open is asked again, the same answer twice counts once.
  async request(method, path, body) {
    const headers = { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" };
    const latest = performance.now() + PATIENCE;
    for (let pause = 200; ; pause = Math.min(2 * pause, 5000)) {
      const late = performance.now() + pause > latest;
      try {
        const sent = { method, headers, body: body && JSON.stringify(body), credentials: "omit" };
        const response = await fetch(`${this.address}/api/v1${path}`, sent);
        if (response.ok) return await response.json();
        if (late || !AGAIN.includes(response.status)) throw await refusal(response);
      } catch (error) {
        if (late || error instanceof Refused) throw error;
      }
      await new Promise((resume) => setTimeout(resume, pause));
    }
  }
}

/** What the server refuses, in its words. */
export class Refused extends Error {}

async function refusal(response) {
  const said = await response.json().catch(() => null);
  return new Refused(said?.error?.message ?? `the server answered with status ${response.status}`);
}

/** The plug-in; takes what jsPsych exports: `plugin(jsPsychModule)`, or `plugin(await import("jspsych"))`. */
export function plugin({ ParameterType }) {
  return class AskwisePlugin {
    static info = {
      name: "askwise",
      version: "1.0.0",
      parameters: {
        /** The study, `new Askwise(link)`; the same one for all trials. */
        study: { type: ParameterType.OBJECT, default: undefined },
        /** HTML of an option, from its values. */
        show: { type: ParameterType.FUNCTION, default: (option) => describe(option) },
        /** Text of a button for "can't decide"; null for none. */
        undecided: { type: ParameterType.STRING, default: null },
        /** Texts of the buttons of a yes/no question. */
        words: { type: ParameterType.STRING, array: true, default: ["Yes", "No"] },
      },
      data: {
        question: { type: ParameterType.INT },
        options: { type: ParameterType.COMPLEX },
        answer: { type: ParameterType.COMPLEX },
        rt: { type: ParameterType.INT },
      },
    };

    constructor(jsPsych) {
      this.jsPsych = jsPsych;
    }

    async trial(display, trial) {
      const question = await trial.study.ask();
      const began = performance.now();
      const answer = await this.answered(display, trial, question);
      const rt = Math.round(performance.now() - began);
      display.querySelectorAll("button").forEach((button) => (button.disabled = true));
      await trial.study.tell(question, answer, rt / 1000);
      display.replaceChildren();
      this.jsPsych.finishTrial({ question: question.id, options: question.options, answer, rt });
    }

    /** The answer, once a button is clicked. */
    answered(display, trial, question) {
      const section = document.createElement("div");
      section.className = "askwise";
      const title = document.createElement("p");
      title.textContent = question.question;
      const row = document.createElement("div");
      row.className = "askwise-options";
      section.append(title, row);
      display.replaceChildren(section);
      const binary = question.feedback === "binary";
      return new Promise((resolve) => {
        const button = (text, answer, html) => {
          const made = document.createElement("button");
          made.className = "jspsych-btn";
          if (html === undefined) made.textContent = text;
          else made.innerHTML = html;
          made.onclick = () => resolve(answer);
          return made;
        };
        question.options.forEach((option, index) => {
          const html = trial.show(option, question.labels[index]);
          const answer = question.feedback === "batch" ? { winner: index } : { answer: index };
          if (!binary) row.append(button("", answer, html));
          else row.insertAdjacentHTML("beforeend", html);
        });
        if (binary) section.append(...[true, false].map((yes, at) => button(trial.words[at], { answer: yes })));
        if (trial.undecided !== null) section.append(button(trial.undecided, { answer: null }));
      });
    }
  };
}

/** Names and values of an option as HTML; texts of the study cannot become tags. */
function describe(option) {
  const list = document.createElement("div");
  for (const [name, value] of Object.entries(option)) {
    const line = document.createElement("div");
    line.textContent = `${name}: ${typeof value === "number" ? Number(value.toPrecision(4)) : value}`;
    list.append(line);
  }
  return list.innerHTML;
}

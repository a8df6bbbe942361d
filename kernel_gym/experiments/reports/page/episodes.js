// The episode browser: for any attempt the verdict, the kernel, what changed in it, and the context that was shown.
// All texts are untrusted and only ever become text nodes.

const GRADES = ["does not compile", "compiles, is not correct", "correct", "faster than any before"];
const OUTCOMES = { feasible: "feasible", incorrect: "not correct", uncompilable: "does not compile", cheated: "cheated" };

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Return the data of the page: texts, memories, and attempts by run and task. */
async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

class EpisodeBrowser {
  constructor(section, data) {
    this.data = data;
    this.runs = section.querySelector("select[name=run]");
    this.tasks = section.querySelector("select[name=task]");
    this.strip = section.querySelector(".strip");
    this.view = section.querySelector(".attempt");
    this.runs.replaceChildren(...Object.keys(data.runs).map((name) => element("option", {}, name)));
    this.runs.addEventListener("change", () => this.open(this.runs.value, this.tasks.value, 1));
    this.tasks.addEventListener("change", () => this.open(this.runs.value, this.tasks.value, 1));
    this.strip.addEventListener("keydown", (event) => this.step(event));
  }

  get history() {
    return this.data.runs[this.runs.value][this.tasks.value];
  }

  /** Open an attempt, counted from 1; a run or a task that is not there is replaced by the first. */
  open(run, task, number) {
    const names = Object.keys(this.data.runs);
    this.runs.value = names.includes(run) ? run : names[0];
    const tasks = Object.keys(this.data.runs[this.runs.value]);
    this.tasks.replaceChildren(...tasks.map((name) => element("option", {}, name)));
    this.tasks.value = tasks.includes(task) ? task : tasks[0];
    this.number = Math.min(Math.max(1, number || 1), this.history.length);
    this.showStrip();
    this.showAttempt(this.history[this.number - 1]);
  }

  /** Write the open attempt into the page's address, so that it can be passed on. */
  address() {
    const place = { run: this.runs.value, task: this.tasks.value, attempt: this.number };
    return `#${Object.entries(place).map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&")}`;
  }

  showStrip() {
    this.strip.replaceChildren(
      ...this.history.map((attempt, i) => {
        const button = element("button", { type: "button", class: `grade-${attempt.grade}` }, String(i + 1));
        button.title = `attempt ${i + 1}: ${GRADES[attempt.grade]}`;
        button.setAttribute("aria-label", button.title);
        if (i + 1 === this.number) button.setAttribute("aria-current", "true");
        button.tabIndex = i + 1 === this.number ? 0 : -1;
        button.addEventListener("click", () => this.choose(i + 1));
        return button;
      }),
    );
  }

  choose(number) {
    this.open(this.runs.value, this.tasks.value, number);
    history.replaceState(null, "", this.address());
    this.strip.children[this.number - 1].focus();
  }

  step(event) {
    const moves = { ArrowLeft: this.number - 1, ArrowRight: this.number + 1, Home: 1, End: this.history.length };
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.choose(moves[event.key]);
  }

  text(index) {
    return this.data.texts[index];
  }

  memory(index) {
    const [kind, title, parts, code] = this.data.memories[index];
    return { kind, title, text: parts.map((part) => this.text(part)).join(""), code: code === null ? "" : this.text(code) };
  }

  showAttempt(attempt) {
    this.view.replaceChildren(
      element("h3", {}, `Attempt ${this.number} of ${this.history.length}, ${attempt.stage}: ${GRADES[attempt.grade]}`),
      this.verdict(attempt),
      this.context(attempt),
      ...this.changes(attempt),
      ...this.kernel(attempt),
    );
  }

  verdict(attempt) {
    const facts = [
      ["verdict", OUTCOMES[attempt.outcome] || attempt.outcome],
      ["reward", attempt.reward.toFixed(2)],
      ["latency", attempt.latency === null ? "-" : `${attempt.latency.toFixed(2)} us`],
    ];
    const entry = ([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value));
    const list = element("dl", {}, ...facts.map(entry));
    const words = this.text(attempt.feedback);
    return element("div", { class: "verdict" }, list, ...(words ? [element("pre", { class: "wrapped" }, words)] : []));
  }

  kernel(attempt) {
    if (attempt.kernel === null) return [element("p", { class: "soft" }, "The run did not keep this kernel's text.")];
    const source = this.text(attempt.kernel);
    const lines = source.split("\n").map((line) => element("span", { class: "line" }, `${line}\n`));
    return [folded(`Kernel, ${lines.length} lines`, element("pre", { class: "numbered" }, ...lines), "source")];
  }

  /** What differs from the start point; of a draft, from the attempt before. */
  changes(attempt) {
    if (attempt.kernel === null) return [];
    const before = this.history[this.number - 2];
    const [words, source] =
      attempt.start !== null
        ? ["the start point", this.memory(attempt.start).code]
        : before && before.kernel !== null
          ? ["the attempt before", this.text(before.kernel)]
          : ["", ""];
    if (!source) return [element("p", { class: "soft" }, "A first draft has no start point.")];
    const lines = diffLines(source, this.text(attempt.kernel));
    const count = (mark) => lines.filter(([own]) => own === mark).length;
    const shown = nearChanges(lines).map(([mark, line]) =>
      element("span", { class: { "+": "added", "-": "removed", "@": "skipped" }[mark] || "same" }, `${mark} ${line}\n`),
    );
    return [folded(`Changes to ${words}: ${count("+")} lines added, ${count("-")} removed`, element("pre", {}, ...shown), "changes")];
  }

  context(attempt) {
    const kept = (indices) => indices.filter((index) => index !== null);
    const picked = kept(attempt.context).map((index) => this.note(index));
    const pages = kept(attempt.pages).map((index) => this.note(index));
    const lost = attempt.context.length - picked.length;
    return element(
      "div",
      { class: "context" },
      element("h4", {}, `Context: ${attempt.context.length} picked memories, ${attempt.pages.length} API pages`),
      ...(attempt.start === null ? [] : [this.note(attempt.start, "start point")]),
      ...picked,
      ...(lost ? [element("p", { class: "soft" }, `${lost} memories belonged to the episode alone and were not kept.`)] : []),
      ...(pages.length ? [folded(`${pages.length} API pages`, element("div", {}, ...pages), "pages")] : []),
    );
  }

  note(index, kind) {
    const memory = this.memory(index);
    return folded(`${kind || memory.kind}: ${memory.title}`, element("pre", { class: "wrapped" }, memory.text), "note");
  }
}

/** Parts that stay open from attempt to attempt, as the reader left them. */
const opened = { source: true, changes: true };

function folded(title, content, kind) {
  const details = element("details", { class: kind }, element("summary", {}, title), content);
  details.open = Boolean(opened[kind]);
  if (kind in opened) details.addEventListener("toggle", () => (opened[kind] = details.open));
  return details;
}

/** Open the attempt that the page's address names. */
function follow(browser, scroll) {
  const place = new URLSearchParams(location.hash.slice(1));
  if (!place.has("run")) return;
  browser.open(place.get("run"), place.get("task"), Number(place.get("attempt")));
  if (scroll) document.getElementById("episodes").scrollIntoView();
}

async function begin() {
  const packed = document.getElementById("episode-data");
  const section = document.getElementById("episodes");
  if (!packed) return;
  try {
    const data = await unpack(packed.textContent);
    const browser = new EpisodeBrowser(section, data);
    browser.open(section.dataset.run, "", 1);
    section.querySelector(".browser").hidden = false;
    section.querySelector(".waiting").remove();
    follow(browser, true);
    window.addEventListener("hashchange", () => follow(browser, true));
    section.dataset.ready = "yes";
  } catch (error) {
    section.querySelector(".waiting").textContent = `This browser cannot open the attempts (${error.message}).`;
  }
}

begin();

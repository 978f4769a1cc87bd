// Several files: a list in which each gets an answer of its own, a few at a time.

import { forget, recall, remember } from "/console/batch_memory.js";
import { BatchTable } from "/console/batch_table.js";
import { announce, byId } from "/console/dom.js";
import { csv } from "/console/history_csv.js";
import { say, t } from "/console/language.js";
import { Unreadable } from "/console/read_file.js";
import { save, stamp } from "/console/saved_file.js";
import { duration, failureWords, verdictWords } from "/console/words.js";

/** Rows of one list. */
export const MOST_FILES = 1000;

/** Files that are read and asked about at a time. */
const AT_ONCE = 4;
/** Without a time to wait, as long as the service's own limits need to give way. */
const PAUSE_SECONDS = 10;
const SAY_EVERY = 5_000;
/** Too many checks, a service that is not ready, none at all: a file waits for these to pass. */
const PASSING = new Set([429, 503, 0]);

export class Batch {
  /** @param {(check: object) => void} onChoose called with the check of a file that is to be shown. */
  constructor(onChoose) {
    this.entries = [];
    this.asked = "";
    this.said = 0;
    this.table = new BatchTable((entry) => this.#open(entry, onChoose));
    byId("batch-csv").addEventListener("click", () => {
      save(csv(this.table.visible.map(inCsv)), "text/csv", `watermark-files-${stamp(new Date())}.csv`);
    });
    byId("batch-forget").addEventListener("click", () => this.forget());
  }

  /** How many can be checked: after a reload their answers are there, and the files are not. */
  get size() {
    return this.entries.filter(({ file }) => file).length;
  }

  /**
   * Takes the place of the files before; no files: no list.
   *
   * @param {{file: File, name: string}[]} files
   * @param {number} skipped how many of a folder are of other kinds.
   */
  set(files, skipped = 0) {
    forget();
    this.#show(files.map(({ file, name }) => entryOf(name, file)));
    say(byId("batch-note"), () => (skipped ? t("batch.skipped", { count: skipped }) : ""));
  }

  /** Forgets the list, here and in the browser. */
  forget() {
    this.set([]);
  }

  /** Another text is to be checked: answers stay to be read, a list without any goes. */
  putAway() {
    if (this.entries.length === 0) return;
    if (!this.entries.some(({ check }) => check)) this.forget();
    else for (const entry of this.entries) entry.file = null;
  }

  /** Shows what was answered before the page was loaded again. */
  async restore() {
    if (this.entries.length) return;
    const rows = await recall();
    if (this.entries.length || rows.length === 0) return;
    this.#show(rows.map(fromMemory));
    this.#progress();
  }

  /**
   * Asks about each file without an answer, or about all where all have one or other options are `asked`; one that
   * fails says so and the others go on. While the service takes no more, they wait.
   *
   * @param {(file: File, name: string) => Promise<object[]>} read gives the texts of a file, perhaps with their checks as `answer`.
   * @param {(text: object, name: string) => Promise<object>} examine gives a text's check.
   * @param {AbortSignal} signal ends the run; what has an answer keeps it.
   */
  async run(read, examine, signal, asked) {
    const again = asked !== this.asked || this.entries.every(({ check }) => check);
    this.asked = asked;
    const queue = this.entries.filter(({ file, check }) => file && (again || !check));
    for (const entry of queue) this.#say(Object.assign(entry, { check: null, full: null }), "waiting", waiting);
    const run = { read, examine, signal, queue, until: 0, paused: "", started: Date.now(), answered: 0 };
    const working = new Set();
    byId("batch-progress").hidden = false;
    remember(this.entries.map(inMemory));
    for (;;) {
      if (run.until > Date.now()) await this.#wait(run);
      while (working.size < AT_ONCE && queue.length && !signal.aborted && run.until <= Date.now()) {
        const work = this.#one(queue.shift(), run).finally(() => working.delete(work));
        working.add(work);
      }
      this.#progress(run);
      if (working.size) await Promise.race(working);
      else if (queue.length === 0 || signal.aborted) break;
    }
    for (const entry of this.entries) if (["waiting", "running"].includes(entry.state)) this.#say(entry, "waiting", unchecked);
    remember(this.entries.map(inMemory));
    this.#progress();
    const outcome = { found: this.#of("watermarked"), count: this.entries.length, unanswered: this.#of("failed", "waiting") };
    say(byId("batch-left"), () => t("batch.finished", outcome));
    announce(t("batch.finished", outcome));
  }

  /**
   * Asks about all files together, as messages of one conversation.
   *
   * @param {(file: File, name: string) => Promise<object[]>} read gives the texts of a file.
   * @param {(messages: object[]) => Promise<object>} examine gives the check of all.
   */
  async runTogether(read, examine) {
    const messages = [];
    for (const entry of this.entries) {
      this.#say(entry, "running", () => t("batch.reading"));
      try {
        const texts = (await read(entry.file, entry.name)).filter(({ problem }) => !problem);
        messages.push(...texts.map(({ name, text }) => ({ id: name, text })));
      } catch (error) {
        this.#say(entry, "failed", failure(error));
        announce(t("batch.conversation_ended"));
        return null;
      }
      this.#say(entry, "waiting", () => t("batch.read"));
    }
    const check = await examine(messages);
    const { size } = this;
    say(byId("batch-title"), () => t("batch.together", { count: size }));
    return check;
  }

  async #one(entry, run) {
    this.#say(entry, "running", () => t("batch.checking"));
    try {
      const texts = entry.text === null ? await run.read(entry.file, entry.name) : [entry];
      if (texts.length > 1) return this.#split(entry, texts, run.queue);
      entry.title = [texts[0].title, texts[0].unread].filter(Boolean).join(" · ");
      if (texts[0].problem) throw new Unreadable(texts[0].problem);
      const { answer } = texts[0];
      const check = answer ? { ...answer, name: entry.name } : await run.examine(texts[0], entry.name);
      entry.answer = null; // asked again, it is asked anew
      const { evidence, ...result } = check.result;
      // Thousands of scores a text would fill the page's memory: what is long lies outside of it.
      entry.full = new Blob([JSON.stringify({ text: check.text, evidence })]);
      entry.check = { ...check, result, text: "" };
      this.#say(entry, result.verdict, () => verdictWords(check).headline);
      run.answered += 1;
    } catch (error) {
      const refusal = error.problem ?? error;
      if (PASSING.has(refusal.status) || error.name === "AbortError") {
        this.#say(entry, "waiting", waiting);
        // One that a service answers with 503 every time must not keep the others from their turn.
        if (refusal.status === 503) run.queue.push(entry);
        else run.queue.unshift(entry);
        if (error.name === "AbortError") return;
        run.until = Math.max(run.until, Date.now() + 1000 * (refusal.retryAfter ?? PAUSE_SECONDS));
        run.paused = refusal.status === 429 ? "batch.paused" : "batch.away";
        return;
      }
      this.#say(entry, "failed", failure(error));
    }
    const number = this.entries.indexOf(entry);
    // Whoever signed out meanwhile has forgotten it.
    if (number >= 0) remember([inMemory(entry, number)]);
  }

  /** The texts of a file take its place. */
  #split(entry, texts, queue) {
    const room = MOST_FILES - this.entries.length + 1;
    const parts = texts.slice(0, room).map(({ name, ...one }) => ({ ...entryOf(`${entry.name} · ${name}`, entry.file), ...one }));
    if (texts.length > room) Object.assign(parts.at(-1), { problem: () => t("batch.too_many", { count: MOST_FILES }) });
    this.entries.splice(this.entries.indexOf(entry), 1, ...parts);
    queue.unshift(...parts);
    this.table.change(this.entries);
    remember(this.entries.map(inMemory));
  }

  async #wait({ until, signal, queue, paused: why }) {
    const note = byId("batch-wait");
    const paused = () => t(why, { duration: duration(Math.ceil((until - Date.now()) / 1000)), count: queue.length });
    note.hidden = false;
    announce(paused());
    while (Date.now() < until && !signal.aborted) {
      say(note, paused);
      const over = AbortSignal.any([signal, AbortSignal.timeout(Math.max(0, Math.min(1000, until - Date.now())))]);
      await new Promise((done) => over.addEventListener("abort", done, { once: true }));
    }
    note.hidden = true;
    if (!signal.aborted) announce(t("batch.goes_on"));
  }

  async #open(entry, onChoose) {
    say(byId("batch-note"), () => (entry.full ? "" : t("batch.without_text")));
    const { text, evidence } = entry.full ? JSON.parse(await entry.full.text()) : { text: "", evidence: null };
    onChoose({ ...entry.check, text, result: { ...entry.check.result, evidence } });
  }

  #show(entries) {
    this.entries = entries;
    this.asked = "";
    byId("batch").hidden = entries.length === 0;
    byId("batch-wait").hidden = true;
    say(byId("batch-left"), () => "");
    byId("batch-progress").hidden = true;
    say(byId("batch-title"), () => t("batch.files", { count: entries.length }));
    this.table.set(entries);
  }

  #progress(run) {
    const progress = byId("batch-progress");
    const left = this.#of("waiting", "running");
    const seconds = run?.answered >= AT_ONCE ? Math.ceil((left * (Date.now() - run.started)) / run.answered / 1000) : 0;
    progress.max = this.entries.length;
    progress.value = this.entries.length - left;
    const done = { done: this.entries.length - left, count: this.entries.length };
    say(byId("batch-title"), () => t("batch.progress", done));
    say(byId("batch-left"), () => {
      if (!run || left === 0) return "";
      return seconds ? t("batch.left_about", { count: left, duration: duration(seconds) }) : t("batch.left", { count: left });
    });
    if (!run || Date.now() < this.said + SAY_EVERY) return;
    this.said = Date.now();
    announce(byId("batch-title").textContent);
  }

  #say(entry, state, about) {
    Object.assign(entry, { state, about });
    this.table.update(entry);
  }

  #of(...states) {
    return this.entries.filter(({ state }) => states.includes(state)).length;
  }
}

const waiting = () => t("batch.waiting");
const unchecked = () => t("batch.not_checked");

/** `text` is there where the file holds several; `full` has what is too long to be held for each. */
const entryOf = (name, file) => ({ name, title: "", file, text: null, problem: null, state: "waiting", about: waiting, check: null, full: null, row: null });

/** What the browser keeps of an entry. */
const inMemory = ({ name, title, state, about, check }, number) => ({ number, name, title, state, about: state === "failed" ? about() : "", check });

/** Why a file has no answer stays in the language in which it was said. */
function fromMemory({ name, title, state, about, check }) {
  const says = { waiting: unchecked, running: unchecked, failed: () => about }[state] ?? (() => verdictWords(check).headline);
  return { ...entryOf(name, null), title, state, about: says, check };
}

const inCsv = ({ name, title, about, check }) => (check ? { ...check, title } : { name, title, problem: about() });

function failure(error) {
  if (error instanceof Unreadable) return () => t("batch.not_read", { reason: error.reason() });
  if (error.status === undefined) throw error;
  return () => failureWords(error).join(". ");
}

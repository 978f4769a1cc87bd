// Several files: a list in which each gets an answer of its own, one after the other.

import { announce, byId, element } from "/console/dom.js";
import { Unreadable } from "/console/read_file.js";
import { count, failureWords, verdictWords } from "/console/words.js";

/** As many as the history keeps. */
export const MOST_FILES = 50;

export class Batch {
  /** @param {(check: object) => void} onChoose called with the check of a file that is to be shown. */
  constructor(onChoose) {
    this.onChoose = onChoose;
    this.entries = [];
  }

  get size() {
    return this.entries.length;
  }

  /** Takes the place of the files before; no files: no list. */
  set(files) {
    this.entries = files.map((file) => ({ file, item: element("li"), check: null }));
    for (const entry of this.entries) this.#say(entry, "waiting", "Waiting");
    byId("batch").hidden = files.length === 0;
    byId("batch-list").replaceChildren(...this.entries.map(({ item }) => item));
    byId("batch-progress").hidden = true;
    byId("batch-title").textContent = `${count(files.length)} files`;
  }

  /**
   * Asks about each file; one that fails says so and the others go on.
   *
   * @param {(file: File) => Promise<object>} examine gives a file's check.
   * @param {AbortSignal} signal ends the run; what has an answer keeps it.
   */
  async run(examine, signal) {
    const progress = byId("batch-progress");
    progress.hidden = false;
    progress.max = this.size;
    progress.value = 0;
    for (const entry of this.entries) {
      if (signal.aborted) break;
      this.#say(entry, "running", "Checking");
      try {
        entry.check = await examine(entry.file);
        this.#say(entry, entry.check.result.verdict, verdictWords(entry.check).headline);
      } catch (error) {
        if (error.name === "AbortError") break;
        this.#say(entry, "failed", failure(error));
      }
      progress.value += 1;
      byId("batch-title").textContent = `${count(progress.value)} of ${count(this.size)} files`;
      announce(byId("batch-title").textContent);
    }
    for (const entry of this.entries) if (["waiting", "running"].includes(entry.state)) this.#say(entry, "waiting", "Not checked");
    announce(this.#summary());
  }

  /**
   * Asks about all files together, as messages of one conversation.
   *
   * @param {(file: File) => Promise<string>} read gives a file's text.
   * @param {(messages: object[]) => Promise<object>} examine gives the check of all.
   */
  async runTogether(read, examine) {
    const messages = [];
    for (const entry of this.entries) {
      this.#say(entry, "running", "Reading");
      try {
        messages.push({ id: entry.file.name, text: await read(entry.file) });
      } catch (error) {
        this.#say(entry, "failed", failure(error));
        announce("The conversation was not checked: a file was not read.");
        return null;
      }
      this.#say(entry, "waiting", "Read");
    }
    const check = await examine(messages);
    byId("batch-title").textContent = `${count(this.size)} files, one conversation`;
    return check;
  }

  #say(entry, state, about) {
    entry.state = state;
    const row = [
      element("span", { className: `dot ${state}` }),
      element("span", { className: "excerpt", textContent: entry.file.name }),
      element("span", { className: "about", textContent: about }),
    ];
    const done = entry.check !== null && state !== "failed";
    const shown = element(done ? "button" : "div", { className: "batch-row", ...(done ? { type: "button" } : {}) }, ...row);
    if (done) shown.addEventListener("click", () => this.onChoose(entry.check));
    entry.item.replaceChildren(shown);
  }

  #summary() {
    const of = (...states) => count(this.entries.filter(({ state }) => states.includes(state)).length);
    return `Finished. Watermark found in ${of("watermarked")} of ${count(this.size)} files; ${of("failed", "waiting")} without an answer.`;
  }
}

function failure(error) {
  if (error instanceof Unreadable) return `Not read. ${error.message}`;
  if (error.status === undefined) throw error;
  return failureWords(error).join(". ");
}

// Several files: a list in which each gets an answer of its own, one after the other.

import { announce, byId, element } from "/console/dom.js";
import { say, t } from "/console/language.js";
import { Unreadable } from "/console/read_file.js";
import { failureWords, verdictWords } from "/console/words.js";

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
    for (const entry of this.entries) this.#say(entry, "waiting", () => t("batch.waiting"));
    byId("batch").hidden = files.length === 0;
    byId("batch-list").replaceChildren(...this.entries.map(({ item }) => item));
    byId("batch-progress").hidden = true;
    say(byId("batch-title"), () => t("batch.files", { count: files.length }));
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
      this.#say(entry, "running", () => t("batch.checking"));
      try {
        entry.check = await examine(entry.file);
        this.#say(entry, entry.check.result.verdict, () => verdictWords(entry.check).headline);
      } catch (error) {
        if (error.name === "AbortError") break;
        if (!(error instanceof Unreadable) && error.status === undefined) throw error;
        this.#say(entry, "failed", () => failureText(error));
      }
      progress.value += 1;
      say(byId("batch-title"), () => t("batch.progress", { done: progress.value, count: this.size }));
      announce(byId("batch-title").textContent);
    }
    for (const entry of this.entries) if (["waiting", "running"].includes(entry.state)) this.#say(entry, "waiting", () => t("batch.not_checked"));
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
      this.#say(entry, "running", () => t("batch.reading"));
      try {
        messages.push({ id: entry.file.name, text: await read(entry.file) });
      } catch (error) {
        if (!(error instanceof Unreadable) && error.status === undefined) throw error;
        this.#say(entry, "failed", () => failureText(error));
        announce(t("batch.conversation_ended"));
        return null;
      }
      this.#say(entry, "waiting", () => t("batch.read"));
    }
    const check = await examine(messages);
    say(byId("batch-title"), () => t("batch.together", { count: this.size }));
    return check;
  }

  #say(entry, state, about) {
    entry.state = state;
    const row = [
      element("span", { className: `dot ${state}` }),
      element("span", { className: "excerpt", textContent: entry.file.name }),
      say(element("span", { className: "about" }), about),
    ];
    const done = entry.check !== null && state !== "failed";
    const shown = element(done ? "button" : "div", { className: "batch-row", ...(done ? { type: "button" } : {}) }, ...row);
    if (done) shown.addEventListener("click", () => this.onChoose(entry.check));
    entry.item.replaceChildren(shown);
  }

  #summary() {
    const of = (...states) => this.entries.filter(({ state }) => states.includes(state)).length;
    return t("batch.finished", { found: of("watermarked"), count: this.size, unanswered: of("failed", "waiting") });
  }
}

function failureText(error) {
  return error instanceof Unreadable ? t("batch.not_read", { reason: error.reason() }) : failureWords(error).join(". ");
}

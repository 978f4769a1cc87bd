// What was checked in this tab: in the tab's own storage, so that a reload keeps it and closing the tab ends it.

import { byId, element } from "/console/dom.js";
import { csv } from "/console/history_csv.js";
import { say, timeOfDay } from "/console/language.js";
import { save, stamp } from "/console/saved_file.js";
import { askedAs, verdictWords } from "/console/words.js";

const STORED = "ttmark-history";
const LONGEST = 50;

export class History {
  /** @param {(check: object) => void} onChoose called with a check that is to be shown again. */
  constructor(onChoose) {
    this.onChoose = onChoose;
    this.checks = [];
    byId("history-csv").addEventListener("click", () => {
      save(csv(this.checks), "text/csv", `watermark-checks-${stamp(new Date())}.csv`);
    });
  }

  add(check) {
    this.checks.unshift(check);
    this.checks.length = Math.min(this.checks.length, LONGEST);
    this.#keep();
    this.#show(check);
  }

  /** Shows what was checked before the page was loaded again. */
  restore() {
    const kept = JSON.parse(sessionStorage.getItem(STORED) ?? "[]");
    this.checks = kept.map((check) => ({ ...check, at: new Date(check.at) }));
    this.#show(null);
  }

  clear() {
    this.checks = [];
    sessionStorage.removeItem(STORED);
    this.#show(null);
  }

  /** Keeps as many as fit into the tab's storage, the newest first. */
  #keep() {
    for (let kept = this.checks.length; kept > 0; kept = Math.floor(kept / 2)) {
      try {
        sessionStorage.setItem(STORED, JSON.stringify(this.checks.slice(0, kept)));
        return;
      } catch (error) {
        if (error.name !== "QuotaExceededError") throw error;
      }
    }
    sessionStorage.removeItem(STORED);
  }

  #show(current) {
    byId("history-csv").hidden = this.checks.length === 0;
    byId("history").replaceChildren(...this.checks.map((check) => this.#entry(check, check === current)));
  }

  #entry(check, isCurrent) {
    const button = element(
      "button",
      { type: "button", "aria-current": String(isCurrent) },
      element("span", { className: `dot ${check.result.verdict}` }),
      element("span", { className: "excerpt", textContent: check.name || check.text.trim().slice(0, 90) }),
      say(element("span", { className: "about" }), () => [verdictWords(check).headline, askedAs(check), timeOfDay(check.at)].join(" · ")),
    );
    button.addEventListener("click", () => {
      this.#show(check);
      this.onChoose(check);
    });
    return element("li", {}, button);
  }
}

// What was checked in this tab: in memory only.

import { byId, element } from "/console/dom.js";
import { MODES, verdictWords } from "/console/words.js";

const LONGEST = 50;
const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

export class History {
  /** @param {(check: object) => void} onChoose called with a check that is to be shown again. */
  constructor(onChoose) {
    this.onChoose = onChoose;
    this.checks = [];
  }

  add(check) {
    this.checks.unshift(check);
    this.checks.length = Math.min(this.checks.length, LONGEST);
    this.#show(check);
  }

  clear() {
    this.checks = [];
    this.#show(null);
  }

  #show(current) {
    byId("history-empty").hidden = this.checks.length > 0;
    byId("history").replaceChildren(...this.checks.map((check) => this.#entry(check, check === current)));
  }

  #entry(check, isCurrent) {
    const button = element(
      "button",
      { type: "button", "aria-current": String(isCurrent) },
      element("span", { className: `dot ${check.result.verdict}` }),
      element("span", { className: "excerpt", textContent: check.text.trim().slice(0, 90) }),
      element("span", { className: "about", textContent: `${verdictWords(check).headline} · ${MODES[check.mode]} · ${time.format(check.at)}` }),
    );
    button.addEventListener("click", () => {
      this.#show(check);
      this.onChoose(check);
    });
    return element("li", {}, button);
  }
}

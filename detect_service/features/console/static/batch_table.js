// The table of several files: sorted by a column, filtered, and drawn in slices, so that 1,000 rows hold up no frame.

import { byId, element } from "/console/dom.js";
import { count, say, t } from "/console/language.js";
import { chance } from "/console/words.js";

const SLICE = 100;
const RANK = ["watermarked", "failed", "too_short", "not_detected", "running", "waiting"];
const FILTERS = ["all", "watermarked", "weak", "not_detected", "too_short", "unanswered"];
const names = new Intl.Collator("en", { numeric: true });
const number = (value) => value ?? Infinity;
const COLUMNS = {
  file: (a, b) => names.compare(a.name, b.name),
  answer: (a, b) => RANK.indexOf(a.state) - RANK.indexOf(b.state) || names.compare(a.about(), b.about()),
  probability: (a, b) => number(a.check?.result.log10_p) - number(b.check?.result.log10_p),
  tokens: (a, b) => number(a.check?.result.tokens) - number(b.check?.result.tokens),
};

export class BatchTable {
  /** @param {(entry: object) => void} onChoose called with an entry whose answer is to be shown. */
  constructor(onChoose) {
    this.onChoose = onChoose;
    this.entries = [];
    this.sorted = { column: null, down: false };
    this.dirty = new Set();
    this.drawing = null;
    this.body = element("tbody", { id: "batch-list" });
    this.verdict = element("select", {}, ...FILTERS.map((value) => say(element("option", { value }), () => t(`list.show_${value}`))));
    this.name = element("input", { type: "search", spellcheck: false });
    this.shown = element("span", { className: "muted small" });
    this.heads = new Map(Object.keys(COLUMNS).map((column) => [column, this.#head(column)]));
    for (const field of [this.verdict, this.name]) field.addEventListener("input", () => this.#arrange());
    const table = element("table", {}, element("thead", {}, element("tr", {}, ...this.heads.values())), this.body);
    byId("batch-table").replaceChildren(
      element("div", { className: "batch-filters" }, ...this.#fields(), this.shown),
      say(element("div", { className: "batch-scroll", tabIndex: 0, role: "region" }, table), () => t("list.table"), "ariaLabel"),
    );
  }

  /** Shows other entries, in their order, without a filter. */
  set(entries) {
    this.entries = entries;
    this.dirty.clear();
    this.sorted = { column: null, down: false };
    this.verdict.value = "all";
    this.name.value = "";
    for (const head of this.heads.values()) head.removeAttribute("aria-sort");
    this.#arrange();
  }

  /** Shows other entries as the ones before were sorted and filtered. */
  change(entries) {
    this.entries = entries;
    this.#arrange();
  }

  /** Draws an entry anew in the next frame. */
  update(entry) {
    if (this.dirty.size === 0) requestAnimationFrame(() => this.#drawDirty());
    this.dirty.add(entry);
  }

  /** The entries that are shown, as they are shown. */
  get visible() {
    return this.#inOrder().filter((entry) => this.#passes(entry));
  }

  #fields() {
    return [["list.show", this.verdict], ["list.name", this.name]].map(([key, field]) =>
      element("label", { className: "select" }, say(element("span", { className: "option-name" }), () => t(key)), field),
    );
  }

  #head(column) {
    const button = say(element("button", { type: "button" }), () => t(`list.column_${column}`));
    button.addEventListener("click", () => this.#sort(column));
    return element("th", { scope: "col", className: column }, button);
  }

  #sort(column) {
    const down = this.sorted.column === column && !this.sorted.down;
    this.sorted = { column, down };
    for (const [name, head] of this.heads) {
      if (name === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    this.#arrange();
  }

  #inOrder() {
    const { column, down } = this.sorted;
    const entries = column === null ? [...this.entries] : this.entries.toSorted(COLUMNS[column]);
    return down ? entries.reverse() : entries;
  }

  /** Puts the rows in order, a slice in each frame. */
  #arrange() {
    cancelAnimationFrame(this.drawing);
    const entries = this.#inOrder();
    let at = 0;
    const slice = () => {
      const some = entries.slice(at, at + SLICE);
      const rows = some.map((entry) => this.#row(entry));
      if (at === 0) this.body.replaceChildren(...rows);
      else this.body.append(...rows);
      at += SLICE;
      this.drawing = at < entries.length ? requestAnimationFrame(slice) : null;
    };
    slice();
    this.#count();
  }

  #row(entry) {
    if (!entry.row) {
      entry.row = element("tr");
      this.#draw(entry);
    }
    entry.row.hidden = !this.#passes(entry);
    return entry.row;
  }

  /** A slice in each frame: at its start a run changes every row. */
  #drawDirty() {
    for (const entry of [...this.dirty].slice(0, SLICE)) {
      this.dirty.delete(entry);
      // One that is not drawn yet is drawn as it is then.
      if (entry.row) {
        this.#draw(entry);
        entry.row.hidden = !this.#passes(entry);
      }
    }
    if (this.dirty.size) requestAnimationFrame(() => this.#drawDirty());
    this.#count();
  }

  #draw(entry) {
    const { name, title, state, about, check } = entry;
    const opens = check !== null && state !== "failed";
    const file = element(opens ? "button" : "span", { className: "batch-file", textContent: name, title: name, ...(opens ? { type: "button" } : {}) });
    if (opens) file.addEventListener("click", () => this.onChoose(entry));
    const mail = title ? [element("span", { className: "batch-mail muted small", textContent: title, title })] : [];
    const log10 = check?.result.log10_p;
    entry.row.className = state;
    entry.row.replaceChildren(
      element("td", { className: "file" }, element("span", { className: `dot ${state}` }), file, ...mail),
      say(element("td", { className: "answer" }), about),
      say(element("td", { className: "probability" }), () => chance(log10)),
      say(element("td", { className: "tokens" }), () => (check ? count(check.result.tokens) : "")),
    );
  }

  #passes({ state, name, title, check }) {
    const wanted = this.verdict.value;
    const shows = {
      all: true,
      unanswered: ["failed", "waiting", "running"].includes(state),
      weak: Boolean(check?.result.weak),
    };
    if (!(shows[wanted] ?? wanted === state)) return false;
    return `${name}\n${title}`.toLowerCase().includes(this.name.value.trim().toLowerCase());
  }

  #count() {
    const some = this.entries.filter((entry) => this.#passes(entry)).length;
    const all = this.entries.length;
    say(this.shown, () => t("list.shown", { some, count: all }));
  }
}

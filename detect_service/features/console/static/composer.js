// The form: text or files, mode, keys, rate.

import { MOST_FILES } from "/console/batch.js";
import { codePointCount } from "/console/code_points.js";
import { byId, element } from "/console/dom.js";
import { chosenFiles, droppedFiles } from "/console/folder.js";
import { say, t } from "/console/language.js";
import { plainText } from "/console/read_file.js";
import { rate } from "/console/words.js";

export class Composer {
  /**
   * @param {() => object | null} allowed what the token allows now.
   * @param {import("/console/batch.js").Batch} batch the files, where there are several.
   * @param {() => void} onFile called when files take the place of the text.
   */
  constructor(allowed, askForToken, batch, onFile) {
    this.allowed = allowed;
    this.batch = batch;
    this.onFile = onFile;
    this.source = { name: "", text: "" };
    this.askForToken = askForToken;
    this.text = byId("text");
    this.form = byId("composer");
    this.rates = [...byId("fpr").options].map((option) => option.value);
    this.text.addEventListener("input", () => this.#textChanged());
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    byId("clear").addEventListener("click", () => {
      this.setText("");
      this.text.focus();
    });
    this.#setUpFiles();
    this.#setUpPicker();
    this.#textChanged();
    this.#sayChosen();
    this.showRates(null);
  }

  /**
   * @param {string} name of the file that the text is from, if it is from one.
   * @param {number[]} pages where its pages begin.
   */
  setText(text, name = "", pages = undefined) {
    this.text.value = text;
    this.source = { name, text: this.text.value, pages };
    this.text.scrollTop = 0;
    this.#textChanged();
  }

  /** @param {(() => string) | null} reason null: there is nothing to complain about. */
  complain(reason) {
    say(byId("text-problem"), reason ?? (() => ""));
    byId("drop").classList.toggle("invalid", reason !== null);
    this.text.setAttribute("aria-invalid", String(reason !== null));
  }

  /** The file that the text is from, or an empty string. */
  get #name() {
    const { name, text } = this.source;
    return name === "" || this.text.value === text ? name : t("composer.edited", { name });
  }

  get #busy() {
    return this.form.getAttribute("aria-busy") === "true";
  }

  /** What to check a text with, or null after saying that a token is missing. */
  options() {
    const allowed = this.allowed();
    if (!allowed) {
      this.askForToken();
      return null;
    }
    const body = {
      fpr: Number(byId("fpr").value),
      normalize: byId("normalize").checked,
      evidence: allowed.evidence ? "blocks" : "none",
      case: true,
    };
    const keys = this.#chosenKeys();
    if (keys) body.keys = keys;
    return { mode: this.form.elements.mode.value, fpr: byId("fpr").value, body };
  }

  /** The text to check with its file's name and the options, or null after saying what is missing. */
  request() {
    const options = this.options();
    if (!options) return null;
    const text = this.text.value.toWellFormed();
    if (text.trim() === "" && this.source.name === "") {
      this.complain(() => t("composer.empty"));
      this.text.focus();
      return null;
    }
    const most = this.allowed().limits.body_bytes;
    if (new Blob([text]).size > most * 0.9) {
      this.complain(() => t("composer.too_long", { count: most }));
      return null;
    }
    const { name, pages } = this.source;
    return { options, text, name: this.#name, pages: this.#name === name ? pages : undefined };
  }

  /** Shows the rates that the token allows; null: those of the page. */
  showRates(rates) {
    const values = rates ? rates.map((one) => one.toExponential()) : this.rates;
    const chosen = values.includes("1e-5") ? "1e-5" : values.at(-1);
    byId("fpr").replaceChildren(
      ...values.map((value) => say(element("option", { value, selected: value === chosen }), () => t("rate.texts", { chance: rate(value) }))),
    );
  }

  /** Shows the keys that the token allows. */
  showKeys(keys) {
    const list = byId("key-list");
    list.replaceChildren(...keys.map(keyChoice));
    if (keys.length === 0) list.append(say(element("p", { className: "muted small" }), () => t("keys.none")));
    this.#sayChosen();
  }

  #chosenKeys() {
    const boxes = [...byId("key-list").querySelectorAll("input")];
    const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
    return chosen.length === boxes.length || chosen.length === 0 ? null : chosen;
  }

  #sayChosen() {
    const chosen = this.#chosenKeys();
    say(byId("keys-chosen"), () => (chosen === null ? t("keys.all") : chosen.length === 1 ? chosen[0] : t("keys.chosen", { count: chosen.length })));
  }

  #textChanged() {
    const { value } = this.text;
    const size = codePointCount(value);
    const empty = value === "" && this.source.name !== "";
    say(byId("text-size"), () => (empty ? t("composer.empty_file", { name: this.source.name }) : t("composer.characters", { count: size })));
    byId("clear").hidden = value === "";
    this.complain(null);
    if (this.#busy) return;
    say(byId("check-label"), () => t("composer.check"));
    this.batch.putAway();
  }

  #setUpPicker() {
    const picker = byId("keys");
    byId("key-list").addEventListener("change", () => this.#sayChosen());
    document.addEventListener("click", (event) => {
      if (!picker.contains(event.target)) picker.open = false;
    });
    picker.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      picker.open = false;
      picker.querySelector("summary").focus();
    });
  }

  #setUpFiles() {
    const drop = byId("drop");
    const input = byId("file");
    input.addEventListener("change", () => {
      this.#take([...input.files].map((file) => ({ file, name: file.name })));
      input.value = "";
    });
    const folder = byId("folder");
    folder.addEventListener("change", () => {
      const { files, skipped } = chosenFiles([...folder.files]);
      folder.value = "";
      this.#take(files, skipped);
    });
    drop.addEventListener("dragover", (event) => {
      if (![...event.dataTransfer.types].includes("Files")) return;
      event.preventDefault();
      drop.classList.add("over");
    });
    drop.addEventListener("dragleave", (event) => {
      if (!drop.contains(event.relatedTarget)) drop.classList.remove("over");
    });
    drop.addEventListener("drop", async (event) => {
      drop.classList.remove("over");
      if (event.dataTransfer.files.length) event.preventDefault();
      const { files, skipped } = await droppedFiles(event.dataTransfer);
      this.#take(files, skipped);
    });
  }

  /** One plain text goes into the text field, all else into a list. */
  #take(files, skipped = 0) {
    if (this.#busy) return;
    if (files.length === 0) {
      if (skipped) this.#reject(() => t("composer.no_file"));
      return;
    }
    this.setText("");
    this.onFile();
    if (files.length > MOST_FILES) this.#reject(() => t("composer.too_many_files", { files: files.length, count: MOST_FILES }));
    else if (files.length > 1 || skipped) this.#list(files, skipped);
    else this.#read(files[0]);
  }

  #list(files, skipped) {
    this.complain(null);
    this.batch.set(files, skipped);
    byId("clear").hidden = false;
    say(byId("check-label"), () => t("composer.check_files", { count: files.length }));
    byId("check").focus();
  }

  async #read({ file, name }) {
    const text = await plainText(file);
    if (text === null) this.#list([{ file, name }], 0);
    else this.setText(text, name);
  }

  #reject(reason) {
    this.complain(reason);
    byId("drop").scrollIntoView({ block: "nearest" });
  }
}

function keyChoice(key) {
  const usable = key.tokenizer_available && key.versions.length > 0;
  return element(
    "label",
    {},
    element("input", { type: "checkbox", value: key.key_id, checked: usable, disabled: !usable }),
    element("span", { textContent: key.key_id }),
    say(element("span", { className: "key-about" }), () =>
      usable ? t("keys.about", { count: key.versions.length, profile: key.profile }) : t("keys.unusable"),
    ),
  );
}

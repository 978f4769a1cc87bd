// The form: text or file, mode, keys, rate.

import { extract } from "/console/api.js";
import { codePointCount } from "/console/code_points.js";
import { byId, element } from "/console/dom.js";
import { count, failureWords, rate } from "/console/words.js";

const READ_BY_THE_SERVICE = /\.(docx|html?|pdf)$/i;
const READ_HERE = /\.(txt|text|md|markdown)$/i;

export class Composer {
  /**
   * @param {() => object | null} allowed what the token allows now.
   * @param {() => void} onFile called when a file takes the place of the text.
   */
  constructor(allowed, askForToken, onFile) {
    this.allowed = allowed;
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
  }

  /** @param {string} name of the file that the text is from, if it is from one. */
  setText(text, name = "") {
    this.text.value = text;
    this.source = { name, text: this.text.value };
    this.text.scrollTop = 0;
    this.#textChanged();
  }

  complain(reason) {
    byId("text-problem").textContent = reason;
    byId("drop").classList.toggle("invalid", reason !== "");
    this.text.setAttribute("aria-invalid", String(reason !== ""));
  }

  /** The file that the text is from, or an empty string. */
  get #name() {
    const { name, text } = this.source;
    return name === "" || this.text.value === text ? name : `${name}, edited`;
  }

  /** What to check, or null after saying what is missing. */
  request() {
    const allowed = this.allowed();
    if (!allowed) {
      this.askForToken("Enter an access token first.");
      return null;
    }
    if (this.text.value.trim() === "") {
      this.complain("Paste a text or open a file first.");
      this.text.focus();
      return null;
    }
    const mode = this.form.elements.mode.value;
    const body = {
      inputs: [{ text: this.text.value.toWellFormed() }],
      fpr: Number(byId("fpr").value),
      normalize: byId("normalize").checked,
      evidence: allowed.evidence ? "blocks" : "none",
      case: true,
    };
    const keys = this.#chosenKeys();
    if (keys) body.keys = keys;
    if (new Blob([body.inputs[0].text]).size > allowed.limits.body_bytes * 0.9) {
      this.complain(`The text is longer than the service takes (${count(allowed.limits.body_bytes)} bytes).`);
      return null;
    }
    return { mode, fpr: byId("fpr").value, body, name: this.#name };
  }

  /** Shows the rates that the token allows; null: those of the page. */
  showRates(rates) {
    const values = rates ? rates.map((one) => one.toExponential()) : this.rates;
    const chosen = values.includes("1e-5") ? "1e-5" : values.at(-1);
    byId("fpr").replaceChildren(
      ...values.map((value) => element("option", { value, textContent: `${rate(value)} texts`, selected: value === chosen })),
    );
  }

  /** Shows the keys that the token allows. */
  showKeys(keys) {
    const list = byId("key-list");
    list.replaceChildren(...keys.map(keyChoice));
    if (keys.length === 0) list.append(element("p", { className: "muted small", textContent: "No keys." }));
    this.#sayChosen();
  }

  #chosenKeys() {
    const boxes = [...byId("key-list").querySelectorAll("input")];
    const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
    return chosen.length === boxes.length || chosen.length === 0 ? null : chosen;
  }

  #sayChosen() {
    const chosen = this.#chosenKeys();
    byId("keys-chosen").textContent = chosen === null ? "All" : chosen.length === 1 ? chosen[0] : `${chosen.length} chosen`;
  }

  #textChanged() {
    const { value } = this.text;
    const size = codePointCount(value);
    byId("text-size").textContent = `${count(size)} ${size === 1 ? "character" : "characters"}`;
    byId("clear").hidden = value === "";
    this.complain("");
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
      if (input.files.length) this.#read(input.files[0]);
      input.value = "";
    });
    drop.addEventListener("dragover", (event) => {
      if (![...event.dataTransfer.types].includes("Files")) return;
      event.preventDefault();
      drop.classList.add("over");
    });
    drop.addEventListener("dragleave", (event) => {
      if (!drop.contains(event.relatedTarget)) drop.classList.remove("over");
    });
    drop.addEventListener("drop", (event) => {
      drop.classList.remove("over");
      const [file] = event.dataTransfer.files;
      if (!file) return;
      event.preventDefault();
      this.#read(file);
    });
  }

  async #read(file) {
    this.setText("");
    this.onFile();
    try {
      if (READ_HERE.test(file.name)) this.setText(await plainText(file), file.name);
      else if (READ_BY_THE_SERVICE.test(file.name)) await this.#readByService(file);
      else this.#reject(file, "Files can be txt, md, html, docx or pdf.");
    } catch (error) {
      this.#reject(file, error.status === undefined ? "It is not a text in UTF-8." : failureWords(error).join(". "));
    }
  }

  async #readByService(file) {
    const allowed = this.allowed();
    if (allowed) this.setText(await extract(allowed.token, file), file.name);
    else {
      this.#reject(file, "The service reads such files: connect first.");
      this.askForToken("Enter an access token first: the service reads such files.");
    }
  }

  #reject(file, reason) {
    this.complain(`${file.name} was not read. ${reason}`);
    byId("drop").scrollIntoView({ block: "nearest" });
  }
}

/** UTF-8, or UTF-16 with a byte order mark. */
async function plainText(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const mark = bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : "utf-8";
  return new TextDecoder(mark, { fatal: true }).decode(bytes);
}

function keyChoice(key) {
  const usable = key.tokenizer_available && key.versions.length > 0;
  const versions = `${key.versions.length} ${key.versions.length === 1 ? "version" : "versions"}`;
  return element(
    "label",
    {},
    element("input", { type: "checkbox", value: key.key_id, checked: usable, disabled: !usable }),
    element("span", { textContent: key.key_id }),
    element("span", { className: "key-about", textContent: usable ? `${versions} · ${key.profile}` : "cannot be used here" }),
  );
}

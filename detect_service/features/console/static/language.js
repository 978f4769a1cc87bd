// The page's words in the language of who reads it: a catalogue for each, numbers, lists and times as it writes them.

import { byId } from "/console/dom.js";

const STORED = "ttmark-language";
const chooser = byId("language");
const offered = [...chooser.options].map((option) => option.value);
const said = new WeakMap();
const listeners = [];
const formats = new Map();
let language = "";
let words = {};

/** A sentence of the catalogue. Numbers are written as the language does; the one named `count` chooses the plural form. */
export function t(key, values = {}) {
  const entry = words[key];
  const sentence = typeof entry === "string" ? entry : entry[new Intl.PluralRules(language).select(values.count)];
  return sentence.replace(/\{(\w+)\}/g, (_, name) => (typeof values[name] === "number" ? count(values[name]) : values[name]));
}

export const count = (number) => format("count", { maximumFractionDigits: 0 }, number);

/** A number with that many digits behind the point. */
export const decimal = (number, digits) =>
  format(digits, { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false }, number);

/** Making a format costs more than a thousand numbers. */
function format(name, options, number) {
  const known = `${language} ${name}`;
  if (!formats.has(known)) formats.set(known, new Intl.NumberFormat(language, options));
  return formats.get(known).format(number);
}

export const list = (parts) => new Intl.ListFormat(language).format(parts);

/** A time of day, as the reader's country writes it where the browser knows that. */
export const timeOfDay = (time) => new Intl.DateTimeFormat(country(), { hour: "2-digit", minute: "2-digit" }).format(time);

const country = () => navigator.languages.find((one) => primary(one) === language) ?? language;

/** Writes `sentence()` into a property of a node now, and again whenever another language is chosen. Returns the node. */
export function say(node, sentence, property = "textContent") {
  said.set(node, (said.get(node) ?? new Map()).set(property, sentence));
  node.dataset.said = "";
  node[property] = sentence();
  return node;
}

/** Calls `listener` whenever another language is chosen. */
export const onLanguage = (listener) => listeners.push(listener);

const primary = (tag) => tag.split("-")[0].toLowerCase();

function preferred() {
  const stored = localStorage.getItem(STORED);
  return [stored, ...navigator.languages.map(primary)].find((one) => offered.includes(one)) ?? "en";
}

async function use(chosen) {
  const response = await fetch(`/console/${chosen}.json`);
  words = await response.json();
  language = chosen;
  chooser.value = chosen;
  document.documentElement.lang = chosen;
  document.title = t("page.title");
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const name of ["aria-label", "placeholder"]) {
    for (const node of document.querySelectorAll(`[data-t-${name}]`)) node.setAttribute(name, t(node.getAttribute(`data-t-${name}`)));
  }
  for (const node of document.querySelectorAll("[data-said]")) {
    for (const [property, sentence] of said.get(node)) node[property] = sentence();
  }
  for (const listener of listeners) listener();
}

chooser.addEventListener("change", async () => {
  const chosen = chooser.value;
  try {
    await use(chosen);
    localStorage.setItem(STORED, chosen);
  } finally {
    chooser.value = language;
  }
});

// Whoever asks for a sentence waits for the first catalogue.
await use(preferred());

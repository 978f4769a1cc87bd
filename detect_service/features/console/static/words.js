// Verdicts, rates and errors in the words of a moderator.

import { decimal, list, t } from "/console/language.js";

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
// As the service rounds: ties go to the even digit.
const twoDigits = new Intl.NumberFormat("en", { maximumSignificantDigits: 2, roundingMode: "halfEven", useGrouping: false });

/** What a check asked. */
export const askedAs = (check) => t(`asked.${check.options.conversation ? "conversation" : check.mode}`);

/** An E-value, given its decimal logarithm. */
export const eValue = (log10) => `E = 10^${decimal(log10, 1)}`;

/** A length as people count, as the service's sentences put it: an English word is some 1.3 tokens. */
export function aboutWords(tokens) {
  const words = tokens && Math.max(1, Math.floor((tokens * 3) / 4));
  return t("length.about", { count: words > 20 ? Number(twoDigits.format(words)) : words });
}

/** A probability as "1 in 100,000", given its decimal logarithm; as the service's sentences put it. */
export function oneIn(log10) {
  if (log10 > -0.3) return t("chance.half");
  if (log10 > -7) return t("chance.one_in", { number: Number((10 ** -log10).toPrecision(2)) });
  return t("chance.power", { power: superscript(Math.floor(-log10 + 1e-9)) });
}

/** The same for a cell of a table: nothing where there is none, a dash where half of all texts show as much. */
export function chance(log10) {
  if (log10 == null) return "";
  return log10 > -0.3 ? "–" : oneIn(log10);
}

function superscript(power) {
  return [...String(power)].map((digit) => SUPERSCRIPTS[Number(digit)]).join("");
}

/** A key version by its name. A number that a request chose is a payload; else the service drew it. */
export function keyName(key) {
  let name = t("key.name", { key: key.key_id, version: String(key.version) });
  if (key.payload != null) name = t("key.payload", { name, number: String(key.payload) });
  else if (key.pool_key != null) name = t("key.pool_key", { name, number: String(key.pool_key) });
  return key.scheme ? t("key.scheme", { name, scheme: key.scheme }) : name;
}

export const rate = (fpr) => (Number(fpr) === 1e-7 ? t("chance.ten_million") : oneIn(Math.log10(Number(fpr))));

/** The rate of a check, and what it counts. */
export const heldTo = ({ fpr, options }) => t(options.conversation ? "rate.conversations" : "rate.texts", { chance: rate(fpr) });

/** Whether a passage by itself is as sure as the rate of its check, so that the headline counts it. */
export const isSure = ({ log10_e_value }, { fpr }) => log10_e_value === null || log10_e_value <= Math.log10(Number(fpr));

/** Headline, explanation and what it does not say, in the service's words, and the language that they are in. */
export const verdictWords = ({ result: { message } }) => ({ ...message, language: message.language ?? "en" });

/** What the normalisation found, or an empty string. */
export function hiddenNote(normalization) {
  if (!normalization) return "";
  const parts = ["invisible", "look_alikes", "marks", "white_space"]
    .filter((kind) => normalization[kind] > 0)
    .map((kind) => t(`hidden.${kind}`, { count: normalization[kind] }));
  if (parts.length === 0) return "";
  return t(normalization.undone ? "hidden.undone" : "hidden.left", { list: list(parts) });
}

/** The route of a mode. */
export const route = (mode) => (mode === "combined" ? "/v1/detect" : `/v1/detect/${mode}`);

/** How strong one step of the text is. */
export function strength(score) {
  const names = ["none", "weak", "clear", "strong"];
  return t(`strength.${names[Math.max(0, Math.min(3, Math.floor(score)))]}`);
}

/** As the service writes it: seconds, minutes or hours, rounded up. */
export function duration(seconds) {
  if (seconds <= 120) return t("duration.seconds", { count: seconds });
  if (seconds <= 7200) return t("duration.minutes", { count: Math.ceil(seconds / 60) });
  return t("duration.hours", { count: Math.ceil(seconds / 3600) });
}

/** Title and text for a check that did not go through. */
export function failureWords({ status, message, retryAfter }) {
  if (status === 0) return [t("failure.away"), t("failure.away_advice")];
  if (status === 401) return [t("failure.token"), t("failure.token_advice")];
  if (status === 429) {
    return [t("failure.busy"), retryAfter ? t("failure.busy_wait", { duration: duration(retryAfter) }) : t("failure.busy_moment")];
  }
  const title = { 403: "scope", 413: "too_long", 503: "not_ready" }[status] ?? "other";
  return [t(`failure.${title}`), message];
}

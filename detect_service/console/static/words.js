// Verdicts, rates and errors in the words of a moderator.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

export const count = (number) => whole.format(number);

export const MODES = {
  combined: "Any kind of text",
  direct: "Unedited text",
  aligned: "Edited text",
  localized: "Mixed text",
};

/** What a check asked. */
export const askedAs = (check) => (check.options.conversation ? "Messages of one conversation" : MODES[check.mode]);

/** An E-value, given its decimal logarithm. */
export const eValue = (log10) => `E = 10^${log10.toFixed(1)}`;

export const READERS = {
  read: "Read along",
  not_needed: "Not needed",
  none: "None read along",
  down: "Does not answer",
};

export const READER_DOWN =
  "The language model that reads along does not answer. The text was checked without it, which finds less; the false alarm rate is the same.";

/** A probability as "1 in 100,000", given its decimal logarithm; as the service's sentences put it. */
export function oneIn(log10) {
  if (log10 > -0.3) return "at least 1 in 2";
  if (log10 > -7) return `1 in ${whole.format(Number((10 ** -log10).toPrecision(2)))}`;
  return `1 in 10${superscript(Math.floor(-log10 + 1e-9))}`;
}

function superscript(power) {
  return [...String(power)].map((digit) => SUPERSCRIPTS[Number(digit)]).join("");
}

export const keyName = (key) =>
  `${key.key_id}, version ${key.version}${poolNumber(key)}${key.scheme ? ` (${key.scheme})` : ""}`;

/** A number that a request chose is a payload; else the service drew it. */
const poolNumber = (key) =>
  key.payload != null ? `, payload ${key.payload}` : key.pool_key != null ? `, pool key ${key.pool_key}` : "";

const RATES = { "1e-3": "1 in 1,000", "1e-5": "1 in 100,000", "1e-7": "1 in 10 million" };

export const rate = (fpr) => RATES[fpr] ?? oneIn(Math.log10(Number(fpr)));

/** Headline, explanation and what it does not say, in the service's words. */
export function verdictWords({ result }) {
  const { headline, explanation, caution } = result.message;
  return { headline, explanation, caution };
}

/** What the normalisation found, or an empty string. */
export function hiddenNote(normalization) {
  if (!normalization) return "";
  const parts = [
    [normalization.invisible, "invisible character", "invisible characters"],
    [normalization.look_alikes, "look-alike letter", "look-alike letters"],
    [normalization.marks ?? 0, "stray mark", "stray marks"],
    [normalization.white_space, "odd space or line break", "odd spaces or line breaks"],
  ]
    .filter(([number]) => number > 0)
    .map(([number, one, many]) => `${count(number)} ${number === 1 ? one : many}`);
  if (parts.length === 0) return "";
  const listed = new Intl.ListFormat("en").format(parts);
  return normalization.undone
    ? `The text holds ${listed}. It was checked as it is and without them.`
    : `The text holds ${listed}, which can hide a watermark. They were left as they are.`;
}

/** The route of a mode. */
export const route = (mode) => (mode === "combined" ? "/v1/detect" : `/v1/detect/${mode}`);

/** How strong one step of the text is. */
export function strength(score) {
  if (score < 1) return "none to weak";
  if (score < 2) return "weak";
  return score < 3 ? "clear" : "strong";
}

/** As the service writes it: seconds, minutes or hours, rounded up. */
export function duration(seconds) {
  if (seconds <= 120) return `${count(seconds)} seconds`;
  if (seconds <= 7200) return `${Math.ceil(seconds / 60)} minutes`;
  return `${Math.ceil(seconds / 3600)} hours`;
}

/** Title and text for a check that did not go through. */
export function failureWords(problem) {
  switch (problem.status) {
    case 0:
      return ["The service cannot be reached", "Check your connection and try again."];
    case 401:
      return ["This access token is not accepted", "It is wrong, revoked or expired. Sign out and connect with another."];
    case 403:
      return ["This access token does not allow that", problem.message];
    case 413:
      return ["The text is too long", problem.message];
    case 429:
      return ["Too many checks at once", problem.retryAfter ? `Try again in ${duration(problem.retryAfter)}.` : "Try again in a moment."];
    case 503:
      return ["The service is not ready", problem.message];
    default:
      return ["The check did not go through", problem.message];
  }
}

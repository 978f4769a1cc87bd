// Verdicts, rates and errors in the words of a moderator.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

export const count = (number) => whole.format(number);

export const MODES = {
  direct: "Unedited text",
  aligned: "Edited text",
  localized: "Mixed text",
};

/** A probability as "1 in 100,000", given its decimal logarithm. */
export function oneIn(log10) {
  if (log10 > -0.3) return "no less than chance";
  if (log10 > -7) return `1 in ${whole.format(Number((10 ** -log10).toPrecision(2)))}`;
  const power = Math.floor(-log10);
  const lead = 10 ** (-log10 - power);
  return `1 in ${lead.toFixed(1)} × 10${superscript(power)}`;
}

function superscript(power) {
  return [...String(power)].map((digit) => SUPERSCRIPTS[Number(digit)]).join("");
}

export const keyName = (key) => `${key.key_id}, version ${key.version}${poolNumber(key)}`;

/** A number that a request chose is a payload; else the service drew it. */
const poolNumber = (key) =>
  key.payload != null ? `, payload ${key.payload}` : key.pool_key != null ? `, pool key ${key.pool_key}` : "";

/** What several keys of a pool in one text mean; empty for one. */
const severalKeys = (result) =>
  (result.pool_keys_found ?? 0) > 1
    ? ` ${count(result.pool_keys_found)} keys of the pool were found: passages of several completions, as in a collection of answers, or in a forgery stitched from stolen pieces.`
    : "";

const RATES = { "1e-3": "1 in 1,000", "1e-5": "1 in 100,000", "1e-7": "1 in 10 million" };

export const rate = (fpr) => RATES[fpr] ?? oneIn(Math.log10(Number(fpr)));

// A few inserted words, such as "not", leave the watermark of the rest in place.
const CHANGED_SINCE = "Numbers, names and negations may have been changed since.";

/** Headline, explanation and advice for one check. */
export function verdictWords(check) {
  const { result, mode, fpr } = check;
  const promise = `no more than ${rate(fpr)} texts without our watermark would get this answer`;
  if (result.verdict === "watermarked") {
    const passages = result.segments?.length ?? 0;
    const where = passages > 1 ? ` in ${count(passages)} passages` : passages === 1 ? " in one passage" : "";
    return {
      headline: `Watermark found${where}`,
      explanation: `This text contains passages made with ${makers(result)}. ${CHANGED_SINCE} The answer is held to a false alarm rate: ${promise}.${severalKeys(result)}`,
      advice: mode === "direct" ? "" : "The passage limits are estimates; a few words more or less may belong to them.",
    };
  }
  if (result.verdict === "too_short") {
    const needed = result.tokens_needed ? ` It has ${count(result.tokens)} tokens; about ${count(result.tokens_needed)} is the least that could be enough.` : "";
    return {
      headline: "Too short to tell",
      explanation: `There is not enough text for an answer that would be a false alarm no more than ${rate(fpr)} times.${needed}`,
      advice: "Add the rest of the text if there is more of it. A token is a word or a piece of one.",
    };
  }
  return {
    headline: "No watermark found",
    explanation: "Nothing in this text points to the keys that were tried. That does not show that a person wrote it: other systems leave no mark of ours, and heavy editing wears a mark off.",
    advice: NEXT_STEP[mode],
  };
}

const NEXT_STEP = {
  direct: "If the text may have been edited, check it as “Edited”; if only parts of it may be generated, as “Mixed”.",
  aligned: "If only parts of the text may be generated, check it as “Mixed”.",
  localized: "Short passages can be too faint to be found on their own: check a suspicious passage by itself.",
};

function makers(result) {
  const segments = result.segments ?? [];
  const names = new Set(segments.length ? segments.map((segment) => keyName(segment.key)) : result.key ? [keyName(result.key)] : []);
  if (names.size === 0) return "one of our keys";
  return `${names.size > 1 ? "our keys" : "our key"} ${[...names].join(" and ")}`;
}

/** What the normalisation found, or an empty string. */
export function hiddenNote(normalization) {
  if (!normalization) return "";
  const parts = [
    [normalization.invisible, "invisible character", "invisible characters"],
    [normalization.look_alikes, "look-alike letter", "look-alike letters"],
    [normalization.marks ?? 0, "stray mark", "stray marks"],
    [normalization.white_space, "unusual space or line end", "unusual spaces or line ends"],
  ]
    .filter(([number]) => number > 0)
    .map(([number, one, many]) => `${count(number)} ${number === 1 ? one : many}`);
  if (parts.length === 0) return "";
  const listed = new Intl.ListFormat("en").format(parts);
  return normalization.undone
    ? `The text holds ${listed}. It was checked as it is and without them.`
    : `The text holds ${listed}, which can hide a watermark. They were left as they are.`;
}

/** How strong one step of the text is. */
export function strength(score) {
  if (score < 1) return "none to weak";
  if (score < 2) return "weak";
  return score < 3 ? "clear" : "strong";
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
      // The service counts documents; here there is one.
      return ["The text is too long", problem.message.replace(/^Document 0 /, "It ")];
    case 429:
      return ["Too many checks at once", problem.retryAfter ? `Try again in ${count(problem.retryAfter)} seconds.` : "Try again in a moment."];
    case 503:
      return ["The service is not ready", problem.message];
    default:
      return ["The check did not go through", problem.message];
  }
}

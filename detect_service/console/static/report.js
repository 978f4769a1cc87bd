// What leaves the page: a summary for the clipboard, a JSON report, a printed page.

import { casePage } from "/console/api.js";
import { announce, byId } from "/console/dom.js";
import { save, stamp } from "/console/saved_file.js";
import { askedAs, eValue, hiddenNote, keyName, oneIn, rate, route, verdictWords } from "/console/words.js";

/** Connects the buttons to the check that `current` gives, and to the access token of now. */
export function setUpReport(current, token) {
  byId("copy").addEventListener("click", async () => {
    const copied = await write(summary(current()));
    flash(byId("copy"), copied ? "Copied" : "Not allowed here");
  });
  byId("download").addEventListener("click", () => {
    save(JSON.stringify(report(current()), null, 2), "application/json", `watermark-check-${stamp(current().at)}.json`);
  });
  byId("save-case").addEventListener("click", () => {
    save(current().result.case, "application/json", `watermark-case-${stamp(current().at)}.json`);
  });
  byId("save-page").addEventListener("click", async () => {
    const { result, text, at } = current();
    try {
      save(await casePage(token(), result.case, text || undefined), "text/html", `watermark-case-${stamp(at)}.html`);
    } catch {
      flash(byId("save-page"), "The service did not write it");
    }
  });
  byId("print").addEventListener("click", () => {
    byId("numbers").open = true;
    window.print();
  });
}

export async function write(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

export function flash(button, text) {
  const label = button.dataset.label ?? button.textContent;
  button.dataset.label = label;
  button.textContent = text;
  announce(text);
  setTimeout(() => {
    button.textContent = label;
  }, 1600);
}

/** A check in a few lines of plain text. */
export function summary(check) {
  const { result, fpr, at, requestId } = check;
  const words = verdictWords(check);
  const lines = [...(check.name ? [check.name] : []), words.headline, words.explanation, words.caution];
  for (const [index, segment] of (result.segments ?? []).entries()) {
    lines.push(`Passage ${index + 1}: ${keyName(segment.key)}, characters ${segment.start_char} to ${segment.end_char}`);
  }
  if (result.log10_p !== null) lines.push(`Unmarked texts that show as much: ${oneIn(result.log10_p)}`);
  if (result.log10_e != null) lines.push(`Evidence: ${eValue(result.log10_e)}`);
  for (const { id, log10_e, error } of result.messages ?? []) {
    if (error || log10_e !== null) lines.push(`Up to ${id}: ${error ? "left out" : eValue(log10_e)}`);
  }
  const note = hiddenNote(result.normalization);
  if (note) lines.push(note);
  lines.push(`Checked as: ${askedAs(check)}. Held to: ${rate(fpr)} texts. ${result.tokens} tokens.`);
  lines.push(`${at.toISOString()}, request ${requestId}`);
  return lines.join("\n");
}

/** All that is needed to understand and repeat a check; never the access token. */
export function report(check) {
  const { case: signed, ...result } = check.result;
  return {
    report: "TTMark watermark check",
    checked_at: check.at.toISOString(),
    request_id: check.requestId,
    headline: verdictWords(check).headline,
    explanation: verdictWords(check).explanation,
    caution: verdictWords(check).caution,
    route: route(check.mode),
    options: check.options,
    skipped_keys: check.skippedKeys,
    file: check.name,
    result,
    case: signed,
    text: check.text,
  };
}

// What leaves the page: a summary for the clipboard, a JSON report, a printed page.

import { announce, byId } from "/console/dom.js";
import { MODES, hiddenNote, keyName, oneIn, rate, route, verdictWords } from "/console/words.js";

/** Connects the buttons to the check that `current` gives. */
export function setUpReport(current) {
  byId("copy").addEventListener("click", async () => {
    const copied = await write(summary(current()));
    flash(byId("copy"), copied ? "Copied" : "Not allowed here");
  });
  byId("download").addEventListener("click", () => {
    const file = new Blob([JSON.stringify(report(current()), null, 2)], { type: "application/json" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = `watermark-check-${current().at.toISOString().slice(0, 19).replaceAll(":", "")}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    announce("Report downloaded.");
  });
  byId("print").addEventListener("click", () => {
    byId("numbers").open = true;
    window.print();
  });
}

async function write(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function flash(button, text) {
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
  const { result, mode, fpr, at, requestId } = check;
  const words = verdictWords(check);
  const lines = [words.headline, words.explanation];
  for (const [index, segment] of (result.segments ?? []).entries()) {
    lines.push(`Passage ${index + 1}: ${keyName(segment.key)}, characters ${segment.start_char} to ${segment.end_char}`);
  }
  if (result.log10_p !== null) lines.push(`Chance of a false alarm this strong: ${oneIn(result.log10_p)}`);
  const note = hiddenNote(result.normalization);
  if (note) lines.push(note);
  lines.push(`Checked as: ${MODES[mode]}. Held to: ${rate(fpr)} texts. ${result.tokens} tokens.`);
  lines.push(`${at.toISOString()}, request ${requestId}`);
  return lines.join("\n");
}

/** All that is needed to understand and repeat a check; never the access token. */
export function report(check) {
  const { inputs, ...options } = check.body;
  return {
    report: "TTMark watermark check",
    checked_at: check.at.toISOString(),
    request_id: check.requestId,
    headline: verdictWords(check).headline,
    explanation: verdictWords(check).explanation,
    route: route(check.mode),
    options,
    skipped_keys: check.skippedKeys,
    result: check.result,
    text: inputs[0].text,
  };
}

// What leaves the page: a summary for the clipboard, a JSON report, a printed page.

import { casePage } from "/console/api.js";
import { announce, byId } from "/console/dom.js";
import { t } from "/console/language.js";
import { save, stamp } from "/console/saved_file.js";
import { aboutWords, askedAs, eValue, heldTo, hiddenNote, isSure, keyName, oneIn, route, verdictWords } from "/console/words.js";

/** Connects the buttons to the check that `current` gives, and to the access token of now. */
export function setUpReport(current, token) {
  byId("copy").addEventListener("click", async () => {
    const copied = await navigator.clipboard?.writeText(summary(current())).then(() => true, () => false);
    flash(byId("copy"), t(copied ? "save.copied" : "save.not_allowed"));
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
      flash(byId("save-page"), t("save.no_page"));
    }
  });
  byId("print").addEventListener("click", () => {
    byId("numbers").open = true;
    window.print();
  });
}

function flash(button, text) {
  button.textContent = text;
  announce(text);
  setTimeout(() => {
    button.textContent = t(button.dataset.t);
  }, 1600);
}

/** A check in a few lines of plain text. */
export function summary(check) {
  const { result, at, requestId } = check;
  const words = verdictWords(check);
  const lines = [...(check.name ? [check.name] : []), words.headline, words.explanation, words.caution];
  for (const [index, segment] of (result.segments ?? []).entries()) {
    const about = t("summary.passage", { number: index + 1, key: keyName(segment.key), start: segment.start_char, end: segment.end_char });
    lines.push(isSure(segment, check) ? about : `${about} · ${t("where.unsure")}`);
  }
  if (result.log10_p !== null) lines.push(t("summary.chance", { chance: oneIn(result.log10_p) }));
  if (result.log10_e != null) lines.push(t("summary.evidence", { evidence: eValue(result.log10_e) }));
  for (const { id, log10_e, error } of result.messages ?? []) {
    if (error || log10_e !== null) lines.push(t("summary.message", { id, evidence: error ? t("summary.left_out") : eValue(log10_e) }));
  }
  const note = hiddenNote(result.normalization);
  if (note) lines.push(note);
  lines.push(t("summary.asked", { asked: askedAs(check), held: heldTo(check), length: aboutWords(result.tokens) }));
  lines.push(t("summary.request", { time: at.toISOString(), request: requestId }));
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

// The history as a table for a spreadsheet (RFC 4180), without the texts.

import { isSure, keyName, verdictWords } from "/console/words.js";

const COLUMNS = ["checked_at", "file", "title", "text_begins", "verdict", "headline", "voice", "key", "log10_p", "log10_e", "reader", "passages", "tokens", "fpr", "mode", "request_id"];

export function csv(checks) {
  const rows = checks.map((check) => (check.problem === undefined ? answered(check) : unanswered(check)));
  // The mark of byte order, or spreadsheets take umlauts for something else.
  return `\uFEFF${[COLUMNS, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("")}`;
}

function answered(check) {
  return [
    check.at.toISOString(),
    check.name,
    check.title ?? "",
    check.text.trim().slice(0, 60).replace(/\s+/g, " "),
    check.result.verdict,
    verdictWords(check).headline,
    check.result.voice ?? "",
    check.result.key ? keyName(check.result.key) : "",
    rounded(check.result.log10_p),
    rounded(check.result.log10_e),
    check.result.reader ?? "",
    check.result.segments?.filter((segment) => isSure(segment, check)).length ?? "",
    check.result.tokens,
    check.fpr,
    check.options.conversation ? "conversation" : check.mode,
    check.requestId,
  ];
}

const unanswered = ({ name, title, problem }) => COLUMNS.map((column) => ({ file: name, title, headline: problem })[column] ?? "");

const rounded = (number) => (number == null ? "" : Number(number.toFixed(3)));

// At the beginning, and behind what a spreadsheet may split at in place of commas, quotes or not.
const FORMULA = /(?:^|(?<=[;\t\r\n]))(?=\s*[=+\-@＝＋－＠])|^(?=[\t\r])/g;

/** A text in which nothing is a formula to a spreadsheet; numbers stay numbers. */
export function cell(value) {
  const text = typeof value === "string" ? value.replace(FORMULA, "'") : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// One check's outcome: verdict, facts, marked text, numbers.

import { byId, definition, element } from "/console/dom.js";
import { evidenceMap, mapNote } from "/console/evidence_map.js";
import { MarkedText, place } from "/console/marked_text.js";
import { READERS, READER_DOWN, askedAs, count, eValue, hiddenNote, keyName, oneIn, rate, verdictWords } from "/console/words.js";

const STRONGEST = 12;

export class ResultView {
  constructor() {
    this.markedText = new MarkedText(byId("document"));
    byId("heat").addEventListener("change", () => {
      byId("legend").hidden = !byId("heat").checked;
      this.markedText.heat(byId("heat").checked);
    });
  }

  hide() {
    byId("result").hidden = true;
  }

  show(check) {
    const { result, text } = check;
    const words = verdictWords(check);
    byId("verdict").dataset.verdict = result.verdict;
    byId("source").textContent = check.name;
    byId("source").hidden = !check.name;
    byId("headline").textContent = words.headline;
    byId("explanation").textContent = words.explanation;
    byId("caution").textContent = words.caution;
    const note = hiddenNote(result.normalization);
    byId("hidden-note").textContent = note;
    byId("hidden-note").hidden = note === "";
    byId("reader-note").textContent = result.reader === "down" ? READER_DOWN : "";
    byId("reader-note").hidden = result.reader !== "down";
    byId("facts").replaceChildren(...facts(check).map(([term, value]) => definition(term, value)));
    for (const id of ["save-case", "save-page"]) byId(id).hidden = !result.case;
    byId("result").hidden = false;
    this.#showText(check);
    this.#showGrowth(result.messages ?? []);
    this.#showNumbers(check);
  }

  /** How the evidence of a conversation grew. */
  #showGrowth(messages) {
    byId("growth").hidden = !messages.some(({ log10_e, error }) => error || log10_e !== null);
    byId("growth-list").replaceChildren(...messages.map((message) => element("li", {}, ...growthRow(message))));
  }

  #showText(check) {
    const { text, result } = check;
    const placed = place(text, result);
    const hasEvidence = placed.blocks.length > 0;
    // Without a text, which was not kept, there is no place to show.
    byId("where").hidden = text === "" || (!hasEvidence && placed.segments.length === 0);
    if (byId("where").hidden) return;
    byId("where").dataset.verdict = result.verdict;
    byId("where-note").textContent = hasEvidence ? mapNote(result, check.mode) : "";
    byId("where-title").textContent = placed.segments.length ? "Where the signal is" : "Strength along the text";
    byId("heat-switch").hidden = !hasEvidence;
    byId("legend").hidden = !hasEvidence || !byId("heat").checked;
    byId("outside-passages").hidden = placed.segments.length === 0;
    byId("overview").replaceChildren(...(hasEvidence ? evidenceMap(placed, (position) => this.markedText.goTo(position)) : []));
    byId("passages").replaceChildren(...placed.segments.map((segment) => this.#passage(segment, text)));
    this.markedText.show(text, placed, hasEvidence && byId("heat").checked);
  }

  #passage(segment, text) {
    const words = text.slice(segment.start, segment.end).trim().split(/\s+/).length;
    const button = element(
      "button",
      { type: "button" },
      element("span", { className: `badge key-${segment.color}`, textContent: segment.number }),
      element("span", { textContent: `${segment.name} · about ${count(words)} words` }),
    );
    button.addEventListener("click", () => this.markedText.goTo(segment.start));
    return element("li", {}, button);
  }

  #showNumbers({ result, text, requestId }) {
    const known = result.log10_p !== null;
    byId("numbers").hidden = !known;
    if (!known) return;
    byId("number-list").replaceChildren(
      ...[
        ["p-value (corrected)", scientific(result.log10_p)],
        ["log₁₀ p", result.log10_p.toFixed(3)],
        ...(result.log10_e == null ? [] : [["Evidence", eValue(result.log10_e)]]),
        ...(result.reader ? [["Language model", READERS[result.reader]]] : []),
        ...(result.z === null ? [] : [["z", result.z.toFixed(3)]]),
        ...(result.scored_blocks === null ? [] : [["Blocks scored", count(result.scored_blocks)]]),
        ["Tokens", count(result.tokens)],
        ["Hypotheses tried", count(result.hypotheses)],
        ...(result.key ? [["Profile", result.key.profile]] : []),
        ["Request", requestId],
      ].map(([term, value]) => definition(term, value)),
    );
    byId("strongest").replaceChildren(...tables(place(text, result), text));
  }
}

function growthRow({ id, tokens, error, log10_e, key }) {
  const about = error ? `left out. ${error.message}` : [eValue(log10_e), ...(key ? [keyName(key)] : [])].join(" · ");
  const length = tokens === 1 ? "1 token" : `${count(tokens)} tokens`;
  return [element("span", { className: "excerpt", textContent: `${id} (${length})` }), element("span", { textContent: about })];
}

function facts(check) {
  const { result, fpr } = check;
  const list = [];
  if (result.key && !(result.segments?.length > 1)) list.push(["Key", keyName(result.key)]);
  if (result.log10_p !== null && result.verdict === "watermarked") list.push(["Unmarked texts that show as much", oneIn(result.log10_p)]);
  const texts = check.options.conversation ? "conversations" : "texts";
  list.push(["Held to", `${rate(fpr)} ${texts}`], ["Checked as", askedAs(check)], ["Length", result.tokens === 1 ? "1 token" : `${count(result.tokens)} tokens`]);
  return list;
}

function scientific(log10) {
  const power = Math.floor(log10);
  const lead = 10 ** (log10 - power);
  return power > -4 ? (10 ** log10).toPrecision(3) : `${lead.toFixed(2)}e${power}`;
}

function tables({ blocks, segments }, text) {
  const made = [];
  if (segments.length) {
    made.push(
      table("Passages", ["No.", "Key", "Tokens", "Characters", "E-value"], segments.map((segment) => [
        segment.number,
        segment.name,
        `${count(segment.start_token)} – ${count(segment.end_token)}`,
        `${count(segment.start_char)} – ${count(segment.end_char)}`,
        segment.log10_e_value === null ? "–" : scientific(segment.log10_e_value),
      ])),
    );
  }
  if (blocks.length) {
    const strongest = blocks.toSorted((a, b) => b.score - a.score).slice(0, STRONGEST);
    made.push(
      table("Strongest steps", ["Words", "Token", "Strength"], strongest.map((block) => [
        text.slice(block.start, block.end).trim(),
        count(block.token),
        block.score.toFixed(2),
      ])),
    );
  }
  return made;
}

function table(caption, heads, rows) {
  const head = element("tr", {}, ...heads.map((name) => element("th", { scope: "col", textContent: name })));
  const body = rows.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", { textContent: cell }))));
  return element("table", {}, element("caption", { textContent: caption }), element("thead", {}, head), element("tbody", {}, ...body));
}

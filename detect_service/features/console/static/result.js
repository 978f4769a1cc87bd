// One check's outcome: verdict, facts, marked text, numbers.

import { countBelow } from "/console/code_points.js";
import { byId, definition, element } from "/console/dom.js";
import { evidenceMap, mapNote } from "/console/evidence_map.js";
import { count, decimal, t } from "/console/language.js";
import { MarkedText, place } from "/console/marked_text.js";
import { aboutWords, askedAs, eValue, heldTo, hiddenNote, keyName, oneIn, verdictWords } from "/console/words.js";

const STRONGEST = 12;

export class ResultView {
  constructor() {
    this.check = null;
    this.markedText = new MarkedText(byId("document"));
    byId("heat").addEventListener("change", () => {
      byId("legend").hidden = !byId("heat").checked;
      this.markedText.heat(byId("heat").checked);
    });
  }

  hide() {
    byId("result").hidden = true;
  }

  /** Shows what is shown in the language that was chosen now; the service's own words stay as it wrote them. */
  sayAgain() {
    if (!byId("result").hidden) this.show(this.check);
  }

  show(check) {
    this.check = check;
    const { result } = check;
    const words = verdictWords(check);
    byId("verdict").dataset.verdict = result.verdict;
    byId("source").textContent = check.name;
    byId("source").hidden = !check.name;
    for (const part of ["headline", "explanation", "caution"]) {
      byId(part).textContent = words[part];
      byId(part).lang = words.language;
    }
    const note = hiddenNote(result.normalization);
    byId("hidden-note").textContent = note;
    byId("hidden-note").hidden = note === "";
    byId("reader-note").textContent = result.reader === "down" ? t("reader.note") : "";
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
    const placed = place(check);
    const hasEvidence = placed.blocks.length > 0;
    // Without a text, which was not kept, there is no place to show.
    byId("where").hidden = text === "" || (!hasEvidence && placed.segments.length === 0);
    if (byId("where").hidden) return;
    byId("where").dataset.verdict = result.verdict;
    byId("where-note").textContent = hasEvidence ? mapNote(result, check.mode) : "";
    byId("where-title").textContent = t(placed.segments.length ? "where.title_passages" : "where.title");
    byId("heat-switch").hidden = !hasEvidence;
    byId("legend").hidden = !hasEvidence || !byId("heat").checked;
    byId("outside-passages").hidden = placed.segments.length === 0;
    byId("overview").replaceChildren(...(hasEvidence ? evidenceMap(placed, (position) => this.markedText.goTo(position)) : []));
    byId("passages").replaceChildren(...placed.segments.map((segment) => this.#passage(segment, check)));
    this.markedText.show(text, placed, hasEvidence && byId("heat").checked);
  }

  #passage(segment, { text, pages }) {
    const words = text.slice(segment.start, segment.end).trim().split(/\s+/).length;
    const about = [t("where.passage", { name: segment.name, count: words })];
    if (pages) about.push(t("where.page", { number: pagesOf(segment, pages) }));
    if (!segment.sure) about.push(t("where.unsure"));
    const button = element(
      "button",
      { type: "button" },
      element("span", { className: `badge key-${segment.color}`, textContent: segment.number }),
      element("span", { textContent: about.join(" · ") }),
    );
    button.addEventListener("click", () => this.markedText.goTo(segment.start));
    return element("li", {}, button);
  }

  #showNumbers(check) {
    const { result, text, requestId } = check;
    const known = result.log10_p !== null;
    byId("numbers").hidden = !known;
    if (!known) return;
    byId("number-list").replaceChildren(
      ...[
        [t("numbers.p_value"), scientific(result.log10_p)],
        [t("numbers.log10_p"), decimal(result.log10_p, 3)],
        ...(result.log10_e == null ? [] : [[t("numbers.evidence"), eValue(result.log10_e)]]),
        ...(result.reader ? [[t("numbers.reader"), t(`reader.${result.reader}`)]] : []),
        ...(result.reading ? [[t("numbers.reading"), t(`reading.${result.reading}`)]] : []),
        ...(result.z === null ? [] : [[t("numbers.z"), decimal(result.z, 3)]]),
        ...(result.scored_blocks === null ? [] : [[t("numbers.blocks"), count(result.scored_blocks)]]),
        [t("numbers.tokens"), count(result.tokens)],
        [t("numbers.hypotheses"), count(result.hypotheses)],
        ...(result.key ? [[t("numbers.profile"), result.key.profile]] : []),
        [t("numbers.request"), requestId],
      ].map(([term, value]) => definition(term, value)),
    );
    byId("strongest").replaceChildren(...tables(place(check), text));
  }
}

/** The number of the page that a passage lies on, or of the first and the last one. */
function pagesOf({ start_char, end_char }, pages) {
  const [first, last] = [countBelow(pages, start_char + 1), countBelow(pages, end_char)];
  return first === last ? first : `${first}–${last}`;
}

function growthRow({ id, tokens, error, log10_e, key }) {
  const about = error ? t("growth.left_out", { reason: error.message }) : [eValue(log10_e), ...(key ? [keyName(key)] : [])].join(" · ");
  return [element("span", { className: "excerpt", textContent: `${id} (${aboutWords(tokens)})` }), element("span", { textContent: about })];
}

function facts(check) {
  const { result } = check;
  const list = [];
  if (result.key && !(result.segments?.length > 1)) list.push([t("facts.key"), keyName(result.key)]);
  if (result.voice) list.push([t("facts.voice"), t(`voice.${result.voice}`)]);
  if (result.log10_p !== null && result.verdict === "watermarked") list.push([t("facts.chance"), oneIn(result.log10_p)]);
  list.push([t("facts.held_to"), heldTo(check)], [t("facts.asked"), askedAs(check)], [t("facts.length"), aboutWords(result.tokens)]);
  return list;
}

function scientific(log10) {
  const power = Math.floor(log10);
  const lead = 10 ** (log10 - power);
  return power > -4 && power < 6 ? decimal(10 ** log10, Math.max(0, 2 - power)) : `${decimal(lead, 2)}e${power}`;
}

function tables({ blocks, segments }, text) {
  const made = [];
  if (segments.length) {
    made.push(
      table(t("table.passages"), heads("number", "key", "tokens", "characters", "e_value"), segments.map((segment) => [
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
      table(t("table.steps"), heads("words", "token", "strength"), strongest.map((block) => [
        text.slice(block.start, block.end).trim(),
        count(block.token),
        decimal(block.score, 2),
      ])),
    );
  }
  return made;
}

const heads = (...names) => names.map((name) => t(`table.${name}`));

function table(caption, columns, rows) {
  const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col", textContent: name })));
  const body = rows.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", { textContent: cell }))));
  return element("table", {}, element("caption", { textContent: caption }), element("thead", {}, head), element("tbody", {}, ...body));
}

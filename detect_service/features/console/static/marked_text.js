// The checked text with its passages marked and its heat map.
//
// Passages are <mark> elements. The heat map uses the CSS Custom Highlight API: a text of 100,000 characters
// has tens of thousands of steps, too many for an element each.

import { codePointIndex, countBelow } from "/console/code_points.js";
import { byId, element } from "/console/dom.js";
import { decimal, t } from "/console/language.js";
import { isSure, keyName, strength } from "/console/words.js";

const LEVELS = ["none", "1", "2", "3", "4"];
const PARAGRAPHS_IN_A_CHUNK = 24;
const LONGEST_PIECE = 4000;

/** The class of a score: none (negative), 1 to 4. */
const heatLevel = (score) => (score < 0 ? "none" : score < 1 ? "1" : score < 2 ? "2" : score < 3 ? "3" : "4");

/**
 * Blocks and segments of a check's result with positions in the string and a colour for each key.
 *
 * Where passages were found, the heat map covers them alone: the scores outside are chance.
 */
export function place(check) {
  const { text, result } = check;
  const at = codePointIndex(text);
  const colors = new Map();
  const passages = result.segments ?? [];
  const isColored = (block) => passages.length === 0 || passages.some((s) => s.start_token <= block.start_token && block.end_token <= s.end_token);
  const blocks = (result.evidence ?? [])
    .filter((block) => block.start_char !== null)
    .map((block) => ({
      start: at(block.start_char),
      end: at(block.end_char),
      score: block.score,
      token: block.start_token,
      colored: isColored(block),
    }));
  const segments = passages
    .filter((segment) => segment.start_char !== null)
    .map((segment, index) => {
      const name = keyName(segment.key);
      if (!colors.has(name)) colors.set(name, colors.size % 4);
      const [start, end] = withoutOuterSpace(text, at(segment.start_char), at(segment.end_char));
      return { ...segment, start, end, number: index + 1, name, color: colors.get(name), sure: isSure(segment, check) };
    });
  return { length: Math.max(1, text.length), blocks, segments };
}

/** A range without the white space at its ends, unless it is nothing else. */
function withoutOuterSpace(text, start, end) {
  const piece = text.slice(start, end);
  const inner = piece.trim();
  return inner === "" ? [start, end] : [start + piece.indexOf(inner), start + piece.indexOf(inner) + inner.length];
}

export class MarkedText {
  constructor(container) {
    this.container = container;
    this.blocks = [];
    this.nodes = [];
    this.current = -1;
    container.addEventListener("keydown", (event) => this.#onKey(event));
    container.addEventListener("pointermove", (event) => this.#onPointer(event));
    container.addEventListener("pointerleave", () => this.#hideTip());
    container.addEventListener("scroll", () => this.#hideTip(), { passive: true });
    container.addEventListener("blur", () => this.#select(-1));
  }

  show(text, { blocks, segments }, withHeat) {
    this.text = text;
    this.blocks = blocks;
    this.starts = blocks.map((block) => block.start);
    this.nodes = [];
    this.nodeStarts = [];
    this.#hideTip();
    this.current = -1;
    this.container.replaceChildren(...this.#chunks(segments));
    this.container.scrollTop = 0;
    this.heat(withHeat);
    if (segments.length && this.#scrolls) this.goTo(segments[0].start);
  }

  /** Switches the heat map on or off. */
  heat(on) {
    this.container.classList.toggle("with-heat", on);
    if (!globalThis.CSS?.highlights) return;
    const ranges = Object.fromEntries(LEVELS.map((level) => [level, []]));
    if (on) {
      for (const block of this.blocks) if (block.colored) ranges[heatLevel(block.score)].push(this.#range(block));
    }
    for (const level of LEVELS) {
      const highlight = new Highlight();
      for (const range of ranges[level]) highlight.add(range);
      CSS.highlights.set(`heat-${level}`, highlight);
    }
  }

  /** Whether the text scrolls inside its box; on a narrow screen it is as long as it is. */
  get #scrolls() {
    return getComputedStyle(this.container).overflowY !== "visible";
  }

  /** Scrolls to a character of the text. */
  goTo(position) {
    const [node, offset] = this.#locate(Math.min(position, this.text.length));
    const range = document.createRange();
    range.setStart(node, offset);
    const chunk = node.parentElement.closest("p");
    chunk.scrollIntoView({ block: "nearest" });
    const line = range.getBoundingClientRect();
    if (!this.#scrolls) {
      scrollBy(0, line.top - innerHeight / 3);
      return;
    }
    const box = this.container.getBoundingClientRect();
    this.container.scrollTop += line.top - box.top - this.container.clientHeight / 3;
  }

  #chunks(segments) {
    const chunks = [];
    let lineStart = 0;
    let paragraphs = 0;
    for (const line of this.text.match(/[^\n]*\n|[^\n]+$/g) ?? [""]) {
      for (let from = 0; from < line.length || from === 0; from += LONGEST_PIECE) {
        const piece = line.slice(from, from + LONGEST_PIECE);
        if (paragraphs % PARAGRAPHS_IN_A_CHUNK === 0 || piece.length === LONGEST_PIECE) chunks.push(element("div", { className: "chunk" }));
        chunks.at(-1).append(this.#paragraph(piece, lineStart + from, segments));
        paragraphs += 1;
      }
      lineStart += line.length;
    }
    return chunks;
  }

  #paragraph(piece, start, segments) {
    const end = start + piece.length;
    const paragraph = element("p");
    let at = start;
    const plainUntil = (limit, parent) => {
      if (limit <= at) return;
      const node = document.createTextNode(this.text.slice(at, limit));
      this.nodes.push(node);
      this.nodeStarts.push(at);
      parent.append(node);
      at = limit;
    };
    for (const segment of segments) {
      if (segment.end <= start || segment.start >= end) continue;
      plainUntil(Math.max(start, segment.start), paragraph);
      const mark = element("mark", { className: `key-${segment.color}`, title: segment.name });
      if (segment.start >= start) {
        mark.setAttribute("data-number", segment.number);
        mark.id = `passage-${segment.number}`;
        mark.append(element("span", { className: "sr-only", textContent: ` ${t("where.passage_begins", { number: segment.number, name: segment.name })} ` }));
      }
      plainUntil(Math.min(end, segment.end), mark);
      if (segment.end <= end) mark.append(element("span", { className: "sr-only", textContent: ` ${t("where.passage_ends", { number: segment.number })} ` }));
      paragraph.append(mark);
    }
    plainUntil(end, paragraph);
    return paragraph;
  }

  #locate(position) {
    const index = Math.max(0, countBelow(this.nodeStarts, position + 1) - 1);
    const node = this.nodes[index];
    return [node, Math.min(node.length, position - this.nodeStarts[index])];
  }

  #range({ start, end }) {
    const [startContainer, startOffset] = this.#locate(start);
    const [endContainer, lastOffset] = this.#locate(Math.max(start, end - 1));
    return new StaticRange({ startContainer, startOffset, endContainer, endOffset: Math.min(endContainer.length, lastOffset + 1) });
  }

  #onKey(event) {
    const moves = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
    if (!(event.key in moves) || this.blocks.length === 0) return;
    event.preventDefault();
    const wanted = this.current + moves[event.key];
    this.#select(Math.max(0, Math.min(this.blocks.length - 1, wanted)));
  }

  #select(index) {
    this.current = index;
    globalThis.CSS?.highlights?.delete("current");
    byId("step").textContent = "";
    if (index < 0) return;
    const block = this.blocks[index];
    globalThis.CSS?.highlights?.set("current", new Highlight(this.#range(block)));
    this.goTo(block.start);
    byId("step").textContent = t("where.step", { number: index + 1, steps: this.blocks.length, about: this.#describe(block) });
  }

  #onPointer(event) {
    const caret = document.caretPositionFromPoint?.(event.clientX, event.clientY);
    const node = caret ? this.nodes.indexOf(caret.offsetNode) : -1;
    if (node < 0) return this.#hideTip();
    const position = this.nodeStarts[node] + caret.offset;
    const block = this.blocks[countBelow(this.starts, position + 1) - 1];
    if (!block || position > block.end) return this.#hideTip();
    const tip = byId("tip");
    tip.textContent = this.#describe(block);
    tip.hidden = false;
    const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 12);
    const below = event.clientY + 20;
    const top = below + tip.offsetHeight > innerHeight - 8 ? event.clientY - tip.offsetHeight - 12 : below;
    tip.style.left = `${left}px`;
    tip.style.top = `${top}px`;
    return undefined;
  }

  #describe(block) {
    const words = this.text.slice(block.start, block.end).trim() || t("where.white_space");
    const sign = block.score < 0 ? "−" : "+";
    return t("where.step_about", { words, score: `${sign}${decimal(Math.abs(block.score), 1)}`, strength: strength(block.score) });
  }

  #hideTip() {
    byId("tip").hidden = true;
  }
}

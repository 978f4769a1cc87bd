// A bar chart of the signal along the text, with the passages below it.

import { countBelow } from "/console/code_points.js";
import { element, shape } from "/console/dom.js";
import { decimal, t } from "/console/language.js";

const WIDTH = 1000;
const BASE = 48;
const TALLEST = 44;
const MOST_BARS = 125;
const LEAST_BLOCKS = 2;
const WINDOW = 16;
const FULL = 10; // the z of a window that fills the chart
const LEAST_HEIGHT = 3;

/**
 * Each bar is the strength of a passage: the z of the WINDOW blocks nearest to it. One block says nothing.
 *
 * @param {(position: number) => void} goTo called with a character position of the text.
 */
export function evidenceMap({ length, blocks, segments }, goTo) {
  const bars = Math.max(1, Math.min(MOST_BARS, Math.floor(blocks.length / LEAST_BLOCKS)));
  const step = WIDTH / bars;
  const middles = blocks.map(({ start, end }) => (start + end) / 2);
  const passages = Array.from({ length: bars }, (_, bar) => around(blocks, middles, ((bar + 0.5) * length) / bars));
  const drawing = shape("svg", { viewBox: `0 0 ${WIDTH} 62`, preserveAspectRatio: "none", role: "img" });
  drawing.setAttribute("aria-label", describe(passages, segments));
  for (const [bar, { z, colored }] of passages.entries()) {
    const height = Math.max(LEAST_HEIGHT, Math.min(1, z / FULL) * TALLEST);
    const kind = colored ? `heat-${Math.max(1, Math.min(4, Math.ceil((z / FULL) * 4)))}` : "outside";
    drawing.append(shape("rect", { class: `bar ${kind}`, x: bar * step + step * 0.1, width: step * 0.8, y: BASE - height, height, rx: 1.5 }));
  }
  drawing.append(shape("line", { class: "base", x1: 0, x2: WIDTH, y1: BASE, y2: BASE, "vector-effect": "non-scaling-stroke" }));
  for (const { start, end, color } of segments) {
    const x = (start / length) * WIDTH;
    drawing.append(shape("rect", { class: `span key-${color}`, x, y: BASE + 5, width: Math.max(3, ((end - start) / length) * WIDTH), height: 7, rx: 3 }));
  }
  for (let bar = 0; bar < bars; bar += 1) {
    const hit = shape("rect", { class: "hit", x: bar * step, y: 0, width: step, height: 62 });
    hit.addEventListener("click", () => goTo(Math.floor((bar * length) / bars)));
    drawing.append(hit);
  }
  const ends = element("div", { className: "overview-ends", "aria-hidden": "true" });
  ends.append(
    element("span", { textContent: t("where.map_start") }),
    element("span", { textContent: t("where.map_bars", { count: Math.min(WINDOW, blocks.length) }) }),
    element("span", { textContent: t("where.map_end") }),
  );
  return [drawing, ends];
}

/** The blocks nearest to a position, as many as a window holds: their z, and whether the middle one is coloured. */
function around(blocks, middles, position) {
  const nearest = Math.min(blocks.length - 1, countBelow(middles, position));
  const colored = blocks[nearest].colored;
  let from = nearest;
  let to = nearest + 1;
  // Blocks of a passage and of the rest are not mixed: the ends of a passage are not ramps.
  const open = (index) => index >= 0 && index < blocks.length && blocks[index].colored === colored;
  while (to - from < WINDOW && (open(from - 1) || open(to))) {
    const before = open(from - 1) ? position - middles[from - 1] : Infinity;
    const after = open(to) ? middles[to] - position : Infinity;
    if (before <= after) from -= 1;
    else to += 1;
  }
  const sum = blocks.slice(from, to).reduce((total, { score }) => total + score, 0);
  return { z: sum / Math.sqrt(to - from), colored };
}

/** What the chart does not say. */
export function mapNote({ verdict, segments }, mode) {
  if (verdict !== "watermarked") return t("where.note_chance");
  const notes = [...(segments?.length ? [] : ["whole"]), "low", ...(mode === "direct" ? ["direct"] : [])];
  return notes.map((note) => t(`where.note_${note}`)).join(" ");
}

function describe(passages, segments) {
  const quarters = ["first", "second", "third", "last"].map((name, quarter) => {
    const from = Math.floor((quarter * passages.length) / 4);
    const some = passages.slice(from, Math.max(from + 1, Math.floor(((quarter + 1) * passages.length) / 4)));
    return t(`where.map_${name}`, { strength: decimal(some.reduce((sum, { z }) => sum + z, 0) / some.length, 1) });
  });
  const count = segments.filter(({ sure }) => sure).length;
  const found = count ? [t("where.map_passages", { count })] : [];
  return [t("where.map_summary", { quarters: quarters.join(", ") }), ...found].join(" ");
}

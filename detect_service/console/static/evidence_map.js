// A bar chart of the signal along the text, with the passages below it.

import { element, shape } from "/console/dom.js";
import { heatLevel } from "/console/marked_text.js";

const WIDTH = 1000;
const BASE = 48;
const TALLEST = 44;
const MOST_BARS = 125;
const LEAST_BLOCKS = 2;

/** @param {(position: number) => void} goTo called with a character position of the text. */
export function evidenceMap({ length, blocks, segments }, goTo) {
  const bars = Math.max(1, Math.min(MOST_BARS, Math.floor(blocks.length / LEAST_BLOCKS)));
  const step = WIDTH / bars;
  const sums = new Float64Array(bars);
  const sizes = new Float64Array(bars);
  const inside = new Float64Array(bars);
  for (const { start, end, score, colored } of blocks) {
    const bar = Math.min(bars - 1, Math.floor((((start + end) / 2) * bars) / length));
    sums[bar] += score;
    sizes[bar] += 1;
    inside[bar] += colored;
  }
  const drawing = shape("svg", { viewBox: `0 0 ${WIDTH} 62`, preserveAspectRatio: "none", role: "img" });
  drawing.setAttribute("aria-label", describe(sums, sizes, segments));
  for (let bar = 0; bar < bars; bar += 1) {
    if (sizes[bar] === 0) continue;
    const mean = sums[bar] / sizes[bar];
    const height = Math.max(2, Math.min(1, Math.max(0, mean) / 3) * TALLEST);
    drawing.append(
      shape("rect", { class: `bar ${inside[bar] * 2 < sizes[bar] ? "outside" : `heat-${heatLevel(mean)}`}`, x: bar * step + step * 0.1, width: step * 0.8, y: BASE - height, height, rx: 1.5 }),
    );
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
  ends.append(element("span", { textContent: "start of the text" }), element("span", { textContent: "end" }));
  return [drawing, ends];
}

/** What the chart does not say. */
export function mapNote({ verdict }) {
  if (verdict !== "watermarked") return "Chance alone makes such ups and downs. They say nothing about who wrote a part.";
  return "A low part is not a sign of a human author: one word added or removed can hide the signal of all that follows, and words that could hardly be others carry none.";
}

function describe(sums, sizes, segments) {
  const quarters = ["first", "second", "third", "last"].map((name, quarter) => {
    const from = Math.floor((quarter * sums.length) / 4);
    const to = Math.floor(((quarter + 1) * sums.length) / 4);
    const total = sums.slice(from, to).reduce((sum, value) => sum + value, 0);
    const number = sizes.slice(from, to).reduce((sum, value) => sum + value, 0);
    return `${name} quarter ${number ? (total / number).toFixed(1) : "not scored"}`;
  });
  const passages = segments.length ? ` ${segments.length} passages found.` : "";
  return `Average strength along the text: ${quarters.join(", ")}.${passages}`;
}

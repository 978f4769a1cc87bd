// The service counts characters as Unicode code points, JavaScript strings as UTF-16 units.

/** A function from code point positions of `text` to positions in the string. */
export function codePointIndex(text) {
  const astral = [];
  let codePoints = 0;
  for (let at = 0; at < text.length; codePoints += 1) {
    const size = text.codePointAt(at) > 0xffff ? 2 : 1;
    if (size === 2) astral.push(codePoints);
    at += size;
  }
  if (astral.length === 0) return (position) => position;
  return (position) => position + countBelow(astral, position);
}

/** How many code points `text` has. */
export function codePointCount(text) {
  let surrogates = 0;
  for (let at = 0; at < text.length; at += 1) {
    if ((text.charCodeAt(at) & 0xfc00) === 0xd800) surrogates += 1;
  }
  return text.length - surrogates;
}

/** How many entries of the ascending list `sorted` are below `limit`. */
export function countBelow(sorted, limit) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

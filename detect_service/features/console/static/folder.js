// The files of a drop or of a chosen folder, each with its path as its name.

import { readable } from "/console/read_file.js";

/** More are not looked at: whoever dropped a whole disk gets an answer soon. */
const MOST_LOOKED_AT = 10_000;

/**
 * @typedef {{file: File, name: string}} NamedFile
 * @returns {Promise<{files: NamedFile[], skipped: number}>} of folders those whose kind is read, and how many are not.
 */
export async function droppedFiles(transfer) {
  // Asked at once: after the event the items are gone.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.() ?? null);
  const plain = [...transfer.files].map((file) => ({ file, name: file.name }));
  if (!entries.some((entry) => entry?.isDirectory)) return { files: plain, skipped: 0 };
  const found = [];
  const waiting = entries.filter((entry) => entry !== null);
  while (waiting.length && found.length < MOST_LOOKED_AT) {
    const entry = waiting.shift();
    if (entry.isDirectory) waiting.push(...(await children(entry)));
    else found.push({ file: await new Promise((done, failed) => entry.file(done, failed)), name: entry.fullPath.slice(1) });
  }
  return ofFolders(found);
}

/** The same of a folder that was chosen. */
export const chosenFiles = (files) => ofFolders(files.map((file) => ({ file, name: file.webkitRelativePath || file.name })));

function ofFolders(all) {
  const shown = all.filter(({ name }) => !/(^|\/)\./.test(name));
  const files = shown.filter(({ name }) => readable(name));
  files.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  return { files, skipped: shown.length - files.length };
}

/** A folder names some of its children at each call, until there are none. */
async function children(folder) {
  const reader = folder.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (some.length === 0) return found;
    found.push(...some);
  }
}

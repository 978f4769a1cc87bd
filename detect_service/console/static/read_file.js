// The text of a file: plain text in Unicode is read here, other encodings and documents by the service.

import { extract } from "/console/api.js";
import { t } from "/console/language.js";
import { failureWords } from "/console/words.js";

const READ_BY_THE_SERVICE = /\.(docx|odt|rtf|html?|pdf|epub|eml|txt|text|md|markdown)$/i;
const READ_HERE = /\.(txt|text|md|markdown)$/i;
const SHARE_OF_A_BODY = 0.7; // base64 makes four bytes of three

/** A file without a text to check; `reason` says why. */
export class Unreadable extends Error {
  constructor(reason) {
    super(reason());
    this.reason = reason;
  }
}

/** @param {object | null} allowed what the token allows; null without one. */
export async function readFile(file, allowed) {
  const most = allowed ? Math.floor(allowed.limits.body_bytes * SHARE_OF_A_BODY) : Infinity;
  if (file.size > most) throw new Unreadable(() => t("file.too_large", { count: most }));
  const here = READ_HERE.test(file.name) ? await plainText(file) : null;
  if (here !== null) return here;
  if (!READ_BY_THE_SERVICE.test(file.name)) throw new Unreadable(() => t("file.kinds"));
  if (!allowed) throw new Unreadable(() => t("file.connect"));
  try {
    return await extract(allowed.token, file);
  } catch (error) {
    if (error.status === undefined) throw error;
    throw new Unreadable(() => failureWords(error).join(". "));
  }
}

/** UTF-8, or UTF-16 with a byte order mark; null for anything else. */
async function plainText(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const mark = bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : "utf-8";
  try {
    return new TextDecoder(mark, { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

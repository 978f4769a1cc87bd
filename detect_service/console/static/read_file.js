// The text of a file: plain text in Unicode is read here, other encodings and documents by the service.

import { extract } from "/console/api.js";
import { t } from "/console/language.js";
import { failureWords } from "/console/words.js";

const READ_BY_THE_SERVICE = /\.(docx|odt|rtf|html?|pdf|epub|eml|mbox|csv|txt|text|md|markdown|png|jpe?g|webp|tiff?)$/i;
const READ_HERE = /\.(txt|text|md|markdown)$/i;
const SHARE_OF_A_BODY = 0.7; // base64 makes four bytes of three

const HOLDS_SEVERAL = /\.(mbox|csv)$/i;

/** Whether the console or the service reads files of such a name. */
export const readable = (name) => READ_BY_THE_SERVICE.test(name);

/** Whether such a file holds several texts. */
export const holdsSeveral = (name) => HOLDS_SEVERAL.test(name);

/** A file without a text to check; `reason` says why. `problem` is the service's, where it is. */
export class Unreadable extends Error {
  constructor(reason, problem = null) {
    super(reason());
    this.reason = reason;
    this.problem = problem;
  }
}

/**
 * The texts of a file, each with a name, that of a mail with a `title`, files that came with it as `attachment`, and
 * perhaps with a `problem` in place of a text, which says why; `unread` says what of it was not read.
 *
 * @param {object | null} allowed what the token allows; null without one.
 * @param {AbortSignal} signal ends the reading by the service.
 */
export async function readTexts(file, name, allowed, signal) {
  const most = allowed ? Math.floor(allowed.limits.body_bytes * SHARE_OF_A_BODY) : Infinity;
  if (file.size > most) throw new Unreadable(() => t("file.too_large", { count: most }));
  const here = READ_HERE.test(file.name) ? await plainText(file) : null;
  if (here !== null) return [{ name, text: here }];
  if (!READ_BY_THE_SERVICE.test(file.name)) throw new Unreadable(() => t("file.kinds"));
  if (!allowed) throw new Unreadable(() => t("file.connect"));
  try {
    const { text, title, pages, parts, recognised, ...said } = await extract(allowed.token, file, signal);
    const unread = [recognised && t("file.recognised"), said.unread].filter(Boolean).join(" ");
    return parts?.map((one) => ({ ...one, problem: one.problem && (() => one.problem) })) ?? [{ name, text, title, unread, pages }];
  } catch (error) {
    if (error.status === undefined) throw error;
    throw new Unreadable(() => failureWords(error).join(". "), error);
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

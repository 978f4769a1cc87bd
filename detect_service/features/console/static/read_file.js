// Files: the service reads and examines them in one request; plain text in Unicode can be shown here.

import { checkFile, extract } from "/console/api.js";
import { t } from "/console/language.js";
import { failureWords } from "/console/words.js";

const READ_HERE = /\.(txt|text|md|markdown)$/i;
const BESIDE_A_FILE = 16_384; // bytes of a request that are none of its file

/** Whether the console or the service reads files of such a name. */
export const readable = (name) => /\.(docx|odt|rtf|html?|pdf|epub|eml|mbox|csv|txt|text|md|markdown|png|jpe?g|webp|tiff?)$/i.test(name);

/** Whether such a file holds several texts. */
export const holdsSeveral = (name) => /\.(mbox|csv)$/i.test(name);

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
 * @param {object} allowed what the token allows.
 * @param {AbortSignal} signal ends the reading by the service.
 */
export async function readTexts(file, name, allowed, signal) {
  const here = await plainText(file);
  if (here !== null) return [{ name, text: here }];
  return whereReadable(file, allowed, async () => {
    const { parts, ...whole } = await extract(allowed.token, file, signal);
    return textsOf(parts ?? [whole], name);
  });
}

/**
 * The same with an `answer` about each, all of them in one request. `checkOf` makes a check of a text, its name, its
 * result and the whole answer.
 */
export async function askAboutFile(file, name, allowed, question, checkOf, signal) {
  return whereReadable(file, allowed, async () => {
    const answer = await checkFile(allowed.token, file, question, signal);
    return textsOf(answer.texts, name).map(({ result, problem, ...one }) => {
      if (!result?.error) return { ...one, problem, answer: result && checkOf(one, result, answer) };
      return { ...one, problem: () => result.message.explanation };
    });
  });
}

function textsOf(parts, name) {
  return parts.map(({ recognised, unread, problem, ...one }) => ({
    name,
    ...one,
    unread: [recognised && t("file.recognised"), unread].filter(Boolean).join(" "),
    problem: problem && (() => problem),
  }));
}

async function whereReadable(file, allowed, work) {
  const most = allowed.limits.body_bytes - BESIDE_A_FILE;
  if (file.size > most) throw new Unreadable(() => t("file.too_large", { count: most }));
  try {
    return await work();
  } catch (error) {
    if (error.status === undefined) throw error;
    throw new Unreadable(() => failureWords(error).join(". "), error);
  }
}

/** A text in UTF-8, or UTF-16 with a byte order mark, by its name and its bytes; null for anything else. */
export async function plainText(file) {
  if (!READ_HERE.test(file.name)) return null;
  const bytes = new Uint8Array(await file.arrayBuffer());
  const mark = bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : "utf-8";
  try {
    return new TextDecoder(mark, { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

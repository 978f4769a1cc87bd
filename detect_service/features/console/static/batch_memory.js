// The answers about several files, in this browser's database, so that a reload keeps them: no text, no scores.
// They belong to the tab that asked, and are forgotten with its list, or a day after it was closed.

const DATABASE = "ttmark-files";
const ROWS = "rows";
const TAB = "ttmark-list";
const DAY = 86_400_000;

const settled = (request) =>
  new Promise((done, failed) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error);
  });

let opened = null;

function database() {
  opened ??= (() => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(ROWS, { keyPath: ["list", "number"] });
    return settled(request);
  })();
  return opened;
}

const rows = async (mode) => (await database()).transaction(ROWS, mode).objectStore(ROWS);
const ofList = (list) => IDBKeyRange.bound([list, 0], [list, Infinity]);

/** Keeps rows of this tab's list; a browser that has no room, or keeps nothing, costs no answer. */
export async function remember(kept) {
  if (kept.length === 0) return;
  const list = sessionStorage.getItem(TAB) ?? String(Math.random());
  sessionStorage.setItem(TAB, list);
  try {
    const store = await rows("readwrite");
    const saved = Date.now();
    for (const row of kept) store.put({ ...row, list, saved });
  } catch {
    // Nothing is remembered.
  }
}

/** The rows of this tab's list, in their order. */
export async function recall() {
  const list = sessionStorage.getItem(TAB);
  try {
    const all = list === null ? [] : await settled((await rows("readonly")).getAll(ofList(list)));
    await forgetOld();
    return all;
  } catch {
    return [];
  }
}

/** Forgets this tab's list. */
export async function forget() {
  const list = sessionStorage.getItem(TAB);
  sessionStorage.removeItem(TAB);
  if (list === null) return;
  try {
    await settled((await rows("readwrite")).delete(ofList(list)));
  } catch {
    // Nothing was remembered.
  }
}

async function forgetOld() {
  const store = await rows("readwrite");
  const before = Date.now() - DAY;
  const request = store.openCursor();
  request.onsuccess = () => {
    const cursor = request.result;
    if (!cursor) return;
    if (cursor.value.saved < before && cursor.value.list !== sessionStorage.getItem(TAB)) cursor.delete();
    cursor.continue();
  };
}

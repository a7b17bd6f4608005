// The address of a page holds its whole state: #/runs/ID?outcome=failed&sample=q-17.

const listeners = new Set();

/** Split an address into its segments and parameters. */
export function parseAddress(hash = location.hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const segments = path.split("/").filter(Boolean).map(decodeSafely);
  const params = new URLSearchParams(query);
  // The samples are a part of the page of their run.
  if (segments[0] === "runs" && segments[2] === "samples") {
    segments.length = 2;
    if (!params.has("tab")) params.set("tab", "samples");
  }
  return { segments, params };
}

function decodeSafely(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Make the address of a page; empty parameters are left out. */
export function makeLink(segments, params = {}) {
  const entries = params instanceof URLSearchParams ? [...params] : Object.entries(params);
  const query = new URLSearchParams(
    entries.filter(([, value]) => value !== "" && value !== null && value !== undefined),
  );
  const text = query.toString();
  return `#/${segments.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** Make the address of this page with other parameters; empty values remove a parameter. */
export function linkWith(changes) {
  const { segments, params } = parseAddress();
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === null || value === undefined || value === false) params.delete(name);
    else params.set(name, value === true ? "1" : String(value));
  }
  return makeLink(segments, params);
}

/** Go to an address; `replace` leaves no entry in the browser's history. */
export function navigate(link, { replace = false } = {}) {
  if (link === location.hash) return;
  try {
    history[replace ? "replaceState" : "pushState"](null, "", link);
  } catch {
    location.hash = link;
    return;
  }
  notifyListeners();
}

/** Change parameters of this page's address. */
export function updateParams(changes, options) {
  navigate(linkWith(changes), options);
}

/** Call a listener whenever the address changes. */
export function onNavigate(listener) {
  listeners.add(listener);
}

const PAGE_NAMES = ["runs", "compare", "trends", "evaluators", "label"];
const RUN_PAGES = ["samples", "judges", "rubrics"];

/** Suggest the segments that were probably meant by an unknown address; null without a similar one. */
export function suggestSegments([first = "", ...rest], runIds = []) {
  if (runIds.includes(first)) return suggestSegments(["runs", first, ...rest]) ?? ["runs", first];
  const page = findSimilar(first, PAGE_NAMES);
  if (page !== "runs" || rest.length < 2) return page && page !== first ? [page, ...rest] : null;
  const part = findSimilar(rest[1], RUN_PAGES);
  return part ? [page, rest[0], part] : [page, rest[0]];
}

function findSimilar(text, names) {
  const distances = names.map((name) => [countEdits(text.toLowerCase(), name), name]).sort((a, b) => a[0] - b[0]);
  const [[edits, nearest]] = distances;
  return edits <= nearest.length / 3 ? nearest : null;
}

/** Count the characters to insert, delete, replace, or exchange with their neighbours, to turn a text into another. */
function countEdits(a, b) {
  const rows = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= a.length; i += 1) {
    rows[i] = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const isEqual = a[i - 1] === b[j - 1];
      const isExchange = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      rows[i][j] = Math.min(
        rows[i - 1][j] + 1,
        rows[i][j - 1] + 1,
        rows[i - 1][j - 1] + (isEqual ? 0 : 1),
        isExchange ? rows[i - 2][j - 2] + 1 : Infinity,
      );
    }
  }
  return rows[a.length][b.length];
}

function notifyListeners() {
  for (const listener of listeners) listener();
}

addEventListener("hashchange", notifyListeners);
addEventListener("popstate", notifyListeners);

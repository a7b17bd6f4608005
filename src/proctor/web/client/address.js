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

function notifyListeners() {
  for (const listener of listeners) listener();
}

addEventListener("hashchange", notifyListeners);
addEventListener("popstate", notifyListeners);

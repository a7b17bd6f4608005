// Read payloads: from the server, or from the compressed blocks of a one-file report.

import { splitWords, toLine } from "./format.js";

const BLOCK_ROWS = 100;
const CACHED_BLOCKS = 40;

/** An answer that is not a payload: what is wrong, and how to fix it. */
export class SourceError extends Error {
  constructor(message, fix = "", status = 0) {
    super(message);
    this.fix = fix;
    this.status = status;
  }
}

/** Join path segments; each is escaped. */
export function joinPath(...segments) {
  return segments.map(encodeURIComponent).join("/");
}

function addQuery(path, params, encode) {
  const parts = Object.entries(params ?? {})
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => `${name}=${encode(String(value))}`);
  return parts.length ? `${path}?${parts.join("&")}` : path;
}

class ServerSource {
  home = "server";

  /** A server answers every path. */
  has() {
    return true;
  }

  get(path, params, { signal } = {}) {
    return this.#request(addQuery(`api/${path}`, params, encodeURIComponent), { signal });
  }

  /** Change something; only this page knows the token that the server demands. */
  post(path, body) {
    const token = document.querySelector('meta[name="proctor-token"]')?.content ?? "";
    const headers = { "content-type": "application/json", "x-proctor-token": token };
    return this.#request(`api/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  }

  async #request(path, options) {
    let response;
    try {
      response = await fetch(path, { ...options, credentials: "same-origin" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new SourceError("The server does not answer.", "start it again with `proctor view`");
    }
    let payload = null;
    try {
      payload = await response.json();
    } catch {
      throw new SourceError(`The answer to ${path} is not JSON (status ${response.status}).`, "", response.status);
    }
    if (!response.ok) throw new SourceError(payload.error ?? `status ${response.status}`, payload.fix, response.status);
    return payload;
  }
}

class FileSource {
  home = "file";
  #scripts = new Map();
  #decoded = new Map();

  constructor(scripts) {
    for (const script of scripts) this.#scripts.set(script.dataset.path, script);
  }

  /** True if the report holds a path. */
  has(path) {
    const plain = decodeURIComponent(path);
    return this.#scripts.has(plain) || [...this.#scripts.keys()].some((key) => key.startsWith(`${plain}?`));
  }

  async get(path, params) {
    const [, run, kind] = path.match(/^runs\/([^/]+)\/(rows|search|sample)$/) ?? [];
    if (kind === "rows") return this.#readRows(run, params.at);
    if (kind === "search") return this.#search(run, params);
    if (kind === "sample") return this.#readSample(run, params.id);
    if (path === "compare") return this.#readComparison(params);
    if (path === "find") return this.#findSide(params.reference);
    const payload = await this.#read(path, params);
    if (path.endsWith("/scores")) return pickScores(payload, params.evaluator);
    if (path.endsWith("/numbers")) return { numbers: payload[params.column] };
    return path.endsWith("/metadata") && params?.key ? pickMetadata(payload, params.key) : payload;
  }

  // A report has one run, so that no reference but its id is needed.
  async #findSide(reference) {
    const { runs } = await this.#read("runs");
    const run = runs.find((one) => [reference, reference.slice(0, reference.lastIndexOf("@"))].includes(one.run_id));
    const isWanted = (name) => [run.run_id, `${run.run_id}@${name}`].includes(reference);
    return { run_id: run?.run_id ?? null, configurations: run?.configurations.filter(isWanted) ?? [] };
  }

  async #readComparison({ a, b }) {
    const isSide = (side, wanted) => wanted === `${side.run_id}@${side.configuration}`;
    const pages = await this.#read("compare");
    const page = pages.find((one) => isSide(one.a, a) && isSide(one.b, b));
    if (!page)
      throw new SourceError("This comparison is not in the report.", "open the history with `proctor view`", 404);
    return page;
  }

  #find(path, params) {
    const plain = addQuery(decodeURIComponent(path), params, (text) => text);
    // A script without the query holds all answers.
    return (
      this.#scripts.get(plain) ??
      this.#scripts.get(addQuery(path, params, encodeURIComponent)) ??
      this.#scripts.get(decodeURIComponent(path))
    );
  }

  #read(path, params) {
    const script = this.#find(path, params);
    if (!script) throw new SourceError("This is not in the report.", "open the history with `proctor view`", 404);
    let payload = this.#decoded.get(script);
    if (!payload) {
      payload = inflate(script.textContent);
      this.#decoded.set(script, payload);
      this.#forgetBlocks();
    }
    return payload;
  }

  // Blocks of samples are decoded again when they are needed again, everything else stays.
  #forgetBlocks() {
    const blocks = [...this.#decoded.keys()].filter((script) => script.dataset.path.includes("/details/"));
    for (const script of blocks.slice(0, -CACHED_BLOCKS)) this.#decoded.delete(script);
  }

  async #readBlock(run, index) {
    return this.#read(`runs/${run}/details/${index}`);
  }

  async #readSample(run, sampleId) {
    const grid = await this.#read(`runs/${run}/grid`);
    const row = grid.sample_ids.indexOf(sampleId);
    if (row < 0) throw new SourceError(`There is no sample ${sampleId} in this run.`, "", 404);
    return (await this.#readBlock(run, Math.floor(row / BLOCK_ROWS)))[row % BLOCK_ROWS];
  }

  async #readRows(run, at) {
    const rows = String(at).split(",").map(Number);
    const grid = await this.#read(`runs/${run}/grid`);
    const details = rows.map(async (row) => {
      const block = await this.#readBlock(run, Math.floor(row / BLOCK_ROWS));
      return previewDetail(block[row % BLOCK_ROWS], row, grid);
    });
    return { rows: await Promise.all(details) };
  }

  async #search(run, { text, error, cursor }) {
    const grid = await this.#read(`runs/${run}/grid`);
    const total = grid.sample_ids.length;
    const found = [];
    let block = Number(cursor ?? 0);
    const end = performance.now() + 40;
    while (block * BLOCK_ROWS < total && performance.now() < end) {
      const details = await this.#readBlock(run, block);
      details.forEach((detail, index) => {
        if (containsText(detail, text, error)) found.push(block * BLOCK_ROWS + index);
      });
      block += 1;
    }
    const scanned = Math.min(total, block * BLOCK_ROWS);
    return { rows: found, cursor: scanned < total ? String(block) : null, scanned, total };
  }
}

function pickScores(payload, evaluator) {
  const scores = typeof payload.scores === "string" ? payload.scores : payload.scores[evaluator];
  if (!scores) throw new SourceError(`The scores of ${evaluator} are not in the report.`, "", 404);
  return { scores };
}

function pickMetadata(payload, key) {
  const column = payload.columns ? payload.columns[key] : payload;
  if (!column) throw new SourceError(`The metadata key ${key} is not in the report.`, "", 404);
  return column;
}

/** True if a result of a sample, or of one kind of error, has all words in its texts, as in the search of the server. */
export function containsText({ sample, results }, text, error = "") {
  const words = splitWords(text ?? "");
  const common = words.length ? [...listLeaves([sample.id, sample.input, sample.expected, sample.metadata])] : [];
  return results.some((result) => {
    if (error && result.error?.kind !== error) return false;
    const parts = words.length ? [...common, ...listTexts(result)].map((part) => part.toLowerCase()) : [];
    return words.every((word) => parts.some((part) => part.includes(word)));
  });
}

function* listTexts({ output, error, scores }) {
  yield* listLeaves([output, error?.kind, error?.message]);
  for (const score of Object.values(scores ?? {})) yield score.reason ?? "";
}

function* listLeaves(value) {
  if (value && typeof value === "object") for (const part of Object.values(value)) yield* listLeaves(part);
  else if ((value ?? null) !== null) yield String(value);
}

function previewDetail(detail, row, grid) {
  const cells = detail.results.map((result) => {
    const failed = Object.entries(result.scores ?? {}).find(([, score]) => score.passed !== true);
    const column = grid.configurations.indexOf(result.configuration);
    return {
      cell: (row * grid.configurations.length + column) * grid.epochs + (result.epoch ?? 0),
      output: toLine(result.output),
      error: result.error ? toLine(`${result.error.kind}: ${result.error.message}`) : null,
      reason: failed ? toLine(failed[1].reason) : null,
      evaluator: failed ? failed[0] : null,
    };
  });
  const { sample } = detail;
  return { row, sample_id: sample.id, input: toLine(sample.input), expected: toLine(sample.expected), cells };
}

async function inflate(text) {
  const bytes = decodeBase85(text.trim());
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// As in Python's base64.b85encode, with . and , instead of < and &, which mean something in HTML.
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%,()*+-;.=>?@^_`{|}~";
const DIGIT_VALUES = new Uint8Array(128);
[...DIGITS].forEach((digit, value) => (DIGIT_VALUES[digit.charCodeAt(0)] = value));

/** Decode base 85: five digits are four bytes, the last group may be shorter. */
export function decodeBase85(text) {
  const groups = Math.ceil(text.length / 5);
  const view = new DataView(new ArrayBuffer(groups * 4));
  for (let group = 0, at = 0; group < groups; group += 1) {
    let number = 0;
    for (let place = 0; place < 5; place += 1, at += 1)
      number = number * 85 + (at < text.length ? DIGIT_VALUES[text.charCodeAt(at)] : 84);
    view.setUint32(group * 4, number);
  }
  return new Uint8Array(view.buffer, 0, groups * 4 - (groups * 5 - text.length));
}

/** Decode base64 into bytes. */
export function decodeBytes(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index);
  return bytes;
}

/** Decode a binary column of little-endian floats. */
export function decodeFloats(text) {
  return new Float32Array(decodeBytes(text).buffer);
}

/** Decode a binary column of codes. */
export function decodeCodes(text) {
  return new Uint16Array(decodeBytes(text).buffer);
}

const embedded = document.querySelectorAll("script[data-path]");

export const source = embedded.length ? new FileSource(embedded) : new ServerSource();

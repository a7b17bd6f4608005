// Load the texts of samples for a grid: from one run, or from two configurations that are compared.

import { GridModel } from "./gridmodel.js";
import { joinPath, source } from "./source.js";

const MAX_CACHED_ROWS = 4_000;

/** Loads the texts and columns of one run. */
export class RunLoader {
  constructor(runId) {
    this.runId = runId;
    this.path = joinPath("runs", runId);
    this.rows = new Map();
  }

  /** Return the texts of a row if they are loaded. */
  cached(row) {
    return this.rows.get(row);
  }

  /** Load the texts of rows into the cache. */
  async loadRows(rows, options) {
    const missing = rows.filter((row) => !this.rows.has(row));
    if (!missing.length) return;
    const payload = await source.get(`${this.path}/rows`, { at: missing.join(",") }, options);
    for (const row of payload.rows) this.rows.set(row.row, row);
    for (const row of this.rows.keys()) {
      if (this.rows.size <= MAX_CACHED_ROWS) break;
      this.rows.delete(row);
    }
  }

  /** Forget the rows whose sample or number of results changed, for a run in progress. */
  forgetChanged(model) {
    for (const [row, texts] of this.rows) {
      if (texts.sample_id !== model.ids[row] || texts.cells.length !== model.countResults(row)) this.rows.delete(row);
    }
  }

  /** Search the texts; `onHits` receives rows and the searched share until everything is searched. */
  async search(query, onHits, options) {
    let cursor = null;
    do {
      const payload = await source.get(`${this.path}/search`, { ...query, cursor }, options);
      cursor = payload.cursor;
      const share = payload.share ?? (payload.total ? payload.scanned / payload.total : 1);
      onHits(payload.rows, cursor === null || cursor === undefined ? 1 : share);
    } while (cursor !== null && cursor !== undefined);
  }

  /** Load the scores of an evaluator as base64. */
  async loadScores(evaluator) {
    return (await source.get(`${this.path}/scores`, { evaluator })).scores;
  }

  /** Load latency, tokens or cost as base64. */
  async loadNumbers(column) {
    return (await source.get(`${this.path}/numbers`, { column })).numbers;
  }

  /** Load a metadata column. */
  loadMetadata(key) {
    return source.get(`${this.path}/metadata`, { key });
  }

  /** List the metadata keys: [{key, values}]. */
  async listKeys() {
    try {
      return (await source.get(`${this.path}/metadata`, {})).keys ?? [];
    } catch {
      return [];
    }
  }

  /** Load everything about a sample. */
  loadSample(sampleId) {
    return source.get(`${this.path}/sample`, { id: sampleId });
  }
}

/** Loads the texts of two compared configurations as one grid; the old side `b` comes first. */
export class PairLoader {
  constructor(model, sides) {
    this.model = model;
    this.sides = sides;
  }

  cached(row) {
    const parts = this.sides.map((side) => side.loader.cached(side.rows[row]));
    if (parts.some((part) => part === undefined)) return undefined;
    const { epochs } = this.model;
    const cells = parts.flatMap((part, index) =>
      part.cells
        .map((cell) => ({ ...cell, place: locateCell(cell.cell, this.sides[index].model) }))
        .filter((cell) => cell.place.column === this.sides[index].column)
        .map((cell) => ({ ...cell, cell: (row * 2 + index) * epochs + cell.place.epoch })),
    );
    return { ...parts[1], row, cells };
  }

  async loadRows(rows, options) {
    await Promise.all(
      this.sides.map((side) =>
        side.loader.loadRows(
          rows.map((row) => side.rows[row]),
          options,
        ),
      ),
    );
  }

  async search(query, onHits, options) {
    const unique = this.sides[0].loader === this.sides[1].loader ? this.sides.slice(0, 1) : this.sides;
    const shares = unique.map(() => 0);
    await Promise.all(
      unique.map((side, index) => {
        const pairRow = new Map([...side.rows].map((row, position) => [row, position]));
        return side.loader.search(
          query,
          (hits, share) => {
            shares[index] = share;
            onHits(
              hits.map((row) => pairRow.get(row)).filter((row) => row !== undefined),
              Math.min(...shares),
            );
          },
          options,
        );
      }),
    );
  }

  async loadScores(evaluator) {
    return Promise.all(this.sides.map((side) => side.loader.loadScores(evaluator)));
  }

  loadNumbers(column) {
    return Promise.all(this.sides.map((side) => side.loader.loadNumbers(column)));
  }

  async loadMetadata(key) {
    const side = this.sides[1];
    side.model.addMetadata(await side.loader.loadMetadata(key));
    const { values, codes } = side.model.metadata.get(key);
    return { key, values, decoded: Uint16Array.from(side.rows, (row) => codes[row]) };
  }

  listKeys() {
    return this.sides[1].loader.listKeys();
  }

  async loadSample(sampleId) {
    const payloads = await Promise.all(this.sides.map((side) => side.loader.loadSample(sampleId)));
    const results = payloads.flatMap((payload, index) =>
      payload.results
        .filter((result) => result.configuration === this.sides[index].configuration)
        .map((result) => ({ ...result, configuration: this.sides[index].label })),
    );
    return { ...payloads[1], results };
  }
}

function locateCell(cell, model) {
  return { column: Math.floor(cell / model.epochs) % model.width, epoch: cell % model.epochs };
}

/** Join one configuration of each of two grids over their common samples. */
export function pairModels(sides) {
  const [old, recent] = sides;
  const common = old.model.ids.map((id, row) => [id, row, recent.model.findRow(id)]).filter(([, , row]) => row >= 0);
  old.rows = Int32Array.from(common, ([, row]) => row);
  recent.rows = Int32Array.from(common, ([, , row]) => row);
  const epochs = Math.max(old.model.epochs, recent.model.epochs);
  const evaluators = old.model.evaluators.filter((name) => recent.model.evaluators.includes(name));
  const model = Object.create(GridModel.prototype);
  const join = (read, Type, missing) => joinColumns(sides, read, epochs, Type, missing);
  Object.assign(model, {
    ids: common.map(([id]) => id),
    configurations: sides.map((side) => side.label),
    epochs,
    evaluators,
    rows: common.length,
    width: 2,
    outcomes: join((side) => side.model.outcomes, Uint8Array, 255),
    values: join((side) => side.model.values, Float32Array, NaN),
    numbers: old.model.numbers.filter((name) => recent.model.numbers.includes(name)),
    columns: {},
    encodedMarks: {},
    scores: new Map(),
    metadata: new Map(),
    rowOf: null,
    marks: new Map(evaluators.map((name) => [name, join((side) => side.model.marksOf(name), Uint8Array, 255)])),
  });
  model.addScores = (evaluator, columns) => {
    sides.forEach((side, index) => side.model.addScores(evaluator, columns[index]));
    model.scores.set(
      evaluator,
      join((side) => side.model.scores.get(evaluator), Float32Array, NaN),
    );
  };
  model.addNumbers = (name, columns) => {
    sides.forEach((side, index) => side.model.addNumbers(name, columns[index]));
    model.columns[name] = join((side) => side.model.columns[name], Float32Array, NaN);
  };
  model.addMetadata = ({ key, values, decoded }) => model.metadata.set(key, { values, codes: decoded });
  return model;
}

function joinColumns(sides, read, epochs, Type, missing) {
  const columns = sides.map(read);
  if (columns.some((column) => !column)) return null;
  const joined = new Type(sides[0].rows.length * 2 * epochs).fill(missing);
  sides.forEach((side, index) => {
    side.rows.forEach((row, position) => {
      const first = side.model.cell(row, side.column);
      for (let epoch = 0; epoch < side.model.epochs; epoch += 1) {
        joined[(position * 2 + index) * epochs + epoch] = columns[index][first + epoch];
      }
    });
  });
  return joined;
}

// The results of a run as typed arrays: filter, sort and group rows without touching the page.

import { NO_RESULT, OUTCOMES } from "./dom.js";
import { decodeBytes, decodeCodes, decodeFloats } from "./source.js";

const SKIPPED = OUTCOMES.indexOf("skipped");
const ERROR = OUTCOMES.indexOf("error");

const NO_VALUE = 65_535;
const UNDECIDED = 254;

/** The grid of a run. A column has one entry per cell; states and numbers have one per row and configuration. */
export class GridModel {
  constructor(payload) {
    this.ids = payload.sample_ids;
    this.configurations = payload.configurations;
    this.epochs = payload.epochs || 1;
    this.evaluators = payload.evaluators ?? [];
    this.rows = this.ids.length;
    this.width = this.configurations.length;
    this.outcomes = decodeBytes(payload.outcomes);
    this.values = decodeFloats(payload.values);
    this.numbers = payload.numbers ?? [];
    this.columns = {};
    this.encodedMarks = payload.marks ?? {};
    this.marks = new Map();
    this.scores = new Map();
    this.metadata = new Map();
    this.rowOf = null;
  }

  /** Return the row of a sample, or -1. */
  findRow(sampleId) {
    this.rowOf ??= new Map(this.ids.map((id, row) => [id, row]));
    return this.rowOf.get(sampleId) ?? -1;
  }

  /** Count the results of a row. */
  countResults(row) {
    const first = this.cell(row, 0);
    let count = 0;
    for (let cell = first; cell < first + this.width * this.epochs; cell += 1)
      if (this.outcomes[cell] !== NO_RESULT) count += 1;
    return count;
  }

  /** Return the marks of an evaluator, or the outcomes of the results. */
  marksOf(evaluator) {
    if (!evaluator) return this.outcomes;
    if (!this.marks.has(evaluator)) {
      const encoded = this.encodedMarks[evaluator];
      this.marks.set(evaluator, encoded ? decodeBytes(encoded) : new Uint8Array(this.outcomes.length).fill(NO_RESULT));
    }
    return this.marks.get(evaluator);
  }

  /** Return the values of an evaluator if they have been loaded, or of the results. */
  valuesOf(evaluator) {
    return evaluator ? (this.scores.get(evaluator) ?? null) : this.values;
  }

  /** Store the scores of an evaluator. */
  addScores(evaluator, encoded) {
    this.scores.set(evaluator, decodeFloats(encoded));
  }

  /** Store latency, tokens or cost, which are loaded when something needs them. */
  addNumbers(name, encoded) {
    this.columns[name] = decodeFloats(encoded);
  }

  /** Store a metadata column. */
  addMetadata({ key, values, codes }) {
    this.metadata.set(key, { values, codes: decodeCodes(codes) });
  }

  /** Return the metadata value of a row, or null. */
  metadataValue(key, row) {
    const column = this.metadata.get(key);
    const code = column?.codes[row];
    return code === undefined || code === NO_VALUE ? null : column.values[code];
  }

  /** True if the column of a range is the latency of the target, and not the scores of an evaluator of this name. */
  isLatency(column) {
    return column === "latency_ms" || (column === "latency" && !this.evaluators.includes(column));
  }

  /** Return the first cell of a row and configuration. */
  cell(row, column) {
    return (row * this.width + column) * this.epochs;
  }

  /** Summarize epochs: one outcome per row and configuration; more than half of the epochs must pass. */
  states(evaluator) {
    const marks = this.marksOf(evaluator);
    if (this.epochs === 1) return marks;
    const states = new Uint8Array(this.rows * this.width);
    for (let index = 0; index < states.length; index += 1) states[index] = summarizeEpochs(marks, index * this.epochs, this.epochs);
    return states;
  }

  /** Average a column over epochs, without missing numbers. */
  averages(values) {
    if (!values || this.epochs === 1) return values;
    const means = new Float32Array(this.rows * this.width);
    for (let index = 0; index < means.length; index += 1) {
      let sum = 0;
      let count = 0;
      for (let epoch = 0; epoch < this.epochs; epoch += 1) {
        const value = values[index * this.epochs + epoch];
        if (value === value) {
          sum += value;
          count += 1;
        }
      }
      means[index] = count ? sum / count : NaN;
    }
    return means;
  }

  /** True for rows whose epochs have different outcomes in a configuration. */
  isFlaky(row, evaluator) {
    const marks = this.marksOf(evaluator);
    for (let column = 0; column < this.width; column += 1) {
      const first = this.cell(row, column);
      let seen = UNDECIDED;
      for (let epoch = 0; epoch < this.epochs; epoch += 1) {
        const mark = marks[first + epoch];
        if (mark === NO_RESULT) continue;
        if (seen !== UNDECIDED && seen !== mark) return true;
        seen = mark;
      }
    }
    return false;
  }

  /** Count the rows with at least one result of each outcome, in any configuration and epoch. */
  countOutcomes(evaluator) {
    const marks = this.marksOf(evaluator);
    const cells = this.width * this.epochs;
    const counts = new Array(OUTCOMES.length).fill(0);
    for (let row = 0; row < this.rows; row += 1) {
      let bits = 0;
      for (let cell = row * cells; cell < (row + 1) * cells; cell += 1)
        if (marks[cell] !== NO_RESULT) bits |= 1 << marks[cell];
      for (let index = 0; index < counts.length; index += 1) if (bits & (1 << index)) counts[index] += 1;
    }
    return counts;
  }

  /** Return the first configuration and epoch of a row with a result that did not pass, or null; `first` is tried first. */
  findFailure(row, evaluator, first = -1) {
    const marks = this.marksOf(evaluator);
    const columns = [...this.configurations.keys()].sort((a, b) => (b === first) - (a === first));
    for (const column of columns) {
      const start = this.cell(row, column);
      for (let epoch = 0; epoch < this.epochs; epoch += 1)
        if (matchesOutcome(marks[start + epoch], "notpassed")) return { column, epoch };
    }
    return null;
  }
}

/**
 * Return the rows that pass all filters, in the order of the plan. Filters: outcomes (names, of a result in any
 * configuration and epoch), byConfiguration ({name: outcome of a result, or most:passed, most:notpassed of the sample}),
 * differ, flaky, evaluator, metadata ([[key, value]]), matches (Set of rows), range ({column, configuration, low, high}).
 */
export function filterRows(model, states, filters) {
  const tests = listTests(model, states, filters);
  const rows = new Int32Array(model.rows);
  let count = 0;
  for (let row = 0; row < model.rows; row += 1) {
    if (tests.every((test) => test(row))) rows[count++] = row;
  }
  return rows.subarray(0, count);
}

function listTests(model, states, filters) {
  const tests = [];
  const { width } = model;
  const marks = model.marksOf(filters.evaluator);
  const hasResult = (first, count, outcome) => {
    for (let cell = first; cell < first + count; cell += 1) if (matchesOutcome(marks[cell], outcome)) return true;
    return false;
  };
  if (filters.outcomes?.length) {
    const cells = width * model.epochs;
    tests.push((row) => filters.outcomes.some((outcome) => hasResult(row * cells, cells, outcome)));
  }
  for (const [name, outcome] of Object.entries(filters.byConfiguration ?? {})) {
    const column = model.configurations.indexOf(name);
    if (column < 0) continue;
    const most = outcome.match(/^most:(.*)/)?.[1];
    if (most) tests.push((row) => matchesOutcome(states[row * width + column], most));
    else tests.push((row) => hasResult(model.cell(row, column), model.epochs, outcome));
  }
  if (filters.differ) tests.push((row) => hasDifference(states, row, width));
  if (filters.flaky) tests.push((row) => model.isFlaky(row, filters.evaluator));
  for (const [key, value] of filters.metadata ?? []) tests.push((row) => model.metadataValue(key, row) === value);
  if (filters.range) tests.push(testRange(model, filters.range));
  if (filters.matches) tests.push((row) => filters.matches.has(row));
  return tests;
}

// A skipped result counts neither as passed nor as not passed, as in the flips of a comparison.
function isJudged(state) {
  return state !== NO_RESULT && state !== SKIPPED;
}

/** True if a mark is an outcome; `notpassed` is every outcome but passed and skipped. */
function matchesOutcome(mark, outcome) {
  return outcome === "notpassed" ? mark !== 0 && isJudged(mark) : mark === OUTCOMES.indexOf(outcome);
}

function hasDifference(states, row, width) {
  let seen = NO_RESULT;
  for (let column = 0; column < width; column += 1) {
    const state = states[row * width + column];
    if (state === NO_RESULT) continue;
    if (seen !== NO_RESULT && state !== seen) return true;
    seen = state;
  }
  return false;
}

function testRange(model, { column, configuration, low, high, last }) {
  const isLatency = model.isLatency(column);
  const values = isLatency ? model.columns.latency : model.valuesOf(column);
  const index = model.configurations.indexOf(configuration);
  if (!values || index < 0) return () => true;
  // The columns have single precision; a histogram of latencies has no errors.
  const slack = 1e-6 * Math.max(1, Math.abs(high));
  return (row) => {
    const first = model.cell(row, index);
    for (let cell = first; cell < first + model.epochs; cell += 1) {
      const value = values[cell];
      if (isLatency && model.outcomes[cell] === ERROR) continue;
      if (value >= low - slack && (last ? value <= high + slack : value < high - slack)) return true;
    }
    return false;
  };
}

/** Sort rows by a key: plan, id, difference, or score/latency/tokens/cost of a configuration. */
export function sortRows(model, rows, { key, configuration, descending, values }) {
  if (!key || key === "plan") return descending ? rows.slice().reverse() : rows;
  const sign = descending ? -1 : 1;
  if (key === "id") return rows.slice().sort((a, b) => sign * compareTexts(model.ids[a], model.ids[b]) || a - b);
  const numbers = sortNumbers(model, key, configuration, values);
  if (!numbers) return rows;
  return rows.slice().sort((a, b) => compareNumbers(numbers(a), numbers(b), sign) || a - b);
}

function compareTexts(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareNumbers(a, b, sign) {
  if (Number.isNaN(a)) return Number.isNaN(b) ? 0 : 1;
  return Number.isNaN(b) ? -1 : sign * (a - b);
}

function sortNumbers(model, key, configuration, values) {
  const { width } = model;
  if (key === "difference") return (row) => spread(values, row, width);
  const column = Math.max(0, model.configurations.indexOf(configuration));
  const numbers = key === "score" ? values : model.averages(model.columns[key]);
  return numbers ? (row) => numbers[row * width + column] : null;
}

function spread(values, row, width) {
  let low = Infinity;
  let high = -Infinity;
  for (let column = 0; column < width; column += 1) {
    const value = values[row * width + column];
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return high >= low ? high - low : NaN;
}

/** Arrange rows in groups by a metadata key: [{value, rows, start}], largest group first, rows without a value last. */
export function groupRows(model, rows, key) {
  const groups = new Map();
  for (const row of rows) {
    const value = model.metadataValue(key, row);
    let group = groups.get(value);
    if (!group) groups.set(value, (group = { value, rows: [] }));
    group.rows.push(row);
  }
  return [...groups.values()].sort((a, b) => (a.value === null) - (b.value === null) || b.rows.length - a.rows.length);
}

/** Count the samples that pass in two configurations, `a` the new and `b` the old one; only passed counts as passing. */
export function countPairs(model, a, b) {
  const states = model.states("");
  const counts = { both: 0, lost: 0, won: 0, neither: 0 };
  for (let row = 0; row < model.rows; row += 1) {
    const [newState, oldState] = [states[row * model.width + a], states[row * model.width + b]];
    if (!isJudged(newState) || !isJudged(oldState)) continue;
    if (newState === 0) counts[oldState === 0 ? "both" : "won"] += 1;
    else counts[oldState === 0 ? "lost" : "neither"] += 1;
  }
  return counts;
}

/** Return the filters that select one cell of the table of passes. */
export function pairFilter(key, a, b) {
  const passes = {
    both: ["passed", "passed"],
    lost: ["notpassed", "passed"],
    won: ["passed", "notpassed"],
    neither: ["notpassed", "notpassed"],
  }[key];
  return { [`o.${a}`]: `most:${passes[0]}`, [`o.${b}`]: `most:${passes[1]}` };
}

/** Name the cell of the table of passes that filters select, or "". */
export function selectedPair(params, a, b) {
  return (
    ["both", "lost", "won", "neither"].find((key) =>
      Object.entries(pairFilter(key, a, b)).every(([name, value]) => params.get(name) === value),
    ) ?? ""
  );
}

/** Return the outcome of several epochs: more than half of those that were not skipped must pass. */
function summarizeEpochs(marks, first, epochs) {
  const counts = [0, 0, 0, 0, 0];
  let present = 0;
  for (let epoch = 0; epoch < epochs; epoch += 1) {
    const mark = marks[first + epoch];
    if (mark === NO_RESULT) continue;
    counts[mark] += 1;
    present += 1;
  }
  if (!present) return NO_RESULT;
  if (2 * counts[0] > present - counts[4]) return 0;
  if (counts[0] + counts[1]) return 1;
  return [2, 3, 4].find((mark) => counts[mark]);
}

// A word diff by Myers' algorithm, bounded in time and memory.

const MAX_TOKENS = 40_000;
const MAX_EDITS = 1_500;

/** Split a text into words, spaces and punctuation; scripts without spaces are split into characters. */
export function splitWords(text) {
  return (
    text.match(
      /\n|[^\S\n]+|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[\p{L}\p{M}\p{N}_]+|[^]/gu,
    ) ?? []
  );
}

/**
 * Compare two texts word by word. Return parts {kind: "same" | "removed" | "added", text} in order,
 * or null if the texts are too long or too different for a readable diff.
 */
export function diffWords(before, after) {
  if (before.length + after.length > 8 * MAX_TOKENS) return null;
  const a = splitWords(before);
  const b = splitWords(after);
  if (a.length + b.length > MAX_TOKENS) return null;
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const edits = findEdits(a.slice(start, a.length - end), b.slice(start, b.length - end));
  if (edits === null) return null;
  const parts = [];
  addPart(parts, "same", a.slice(0, start).join(""));
  for (const [kind, token] of edits) addPart(parts, kind, token);
  addPart(parts, "same", a.slice(a.length - end).join(""));
  return groupChanges(parts);
}

function addPart(parts, kind, text) {
  if (!text) return;
  const last = parts.at(-1);
  if (last && last.kind === kind) last.text += text;
  else parts.push({ kind, text });
}

/** Find the shortest list of edits; null if there are more than the limit. */
function findEdits(a, b) {
  const size = a.length + b.length;
  const limit = Math.min(size, MAX_EDITS);
  const frontier = new Int32Array(2 * limit + 3);
  const offset = limit + 1;
  const trace = [];
  for (let edits = 0; edits <= limit; edits += 1) {
    trace.push(frontier.slice(offset - edits - 1, offset + edits + 2));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const down =
        diagonal === -edits ||
        (diagonal !== edits && frontier[offset + diagonal - 1] < frontier[offset + diagonal + 1]);
      let x = down ? frontier[offset + diagonal + 1] : frontier[offset + diagonal - 1] + 1;
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x += 1;
      frontier[offset + diagonal] = x;
      if (x >= a.length && x - diagonal >= b.length) return walkBack(a, b, trace, edits);
    }
  }
  return null;
}

function walkBack(a, b, trace, edits) {
  const path = [];
  let x = a.length;
  let y = b.length;
  for (let step = edits; step > 0; step -= 1) {
    const frontier = trace[step];
    const at = (diagonal) => frontier[diagonal + step + 1];
    const diagonal = x - y;
    const down = diagonal === -step || (diagonal !== step && at(diagonal - 1) < at(diagonal + 1));
    const previous = down ? diagonal + 1 : diagonal - 1;
    const beforeX = at(previous);
    const beforeY = beforeX - previous;
    while (x > beforeX && y > beforeY) path.push(["same", a[((x -= 1), (y -= 1), x)]]);
    path.push(down ? ["added", b[(y -= 1)]] : ["removed", a[(x -= 1)]]);
  }
  while (x > 0) path.push(["same", a[(x -= 1)]]);
  return path.reverse();
}

/** Join changes that only a space separates, so that a replaced phrase reads as one change. */
function groupChanges(parts) {
  const grouped = [];
  let removed = "";
  let added = "";
  const flush = () => {
    addPart(grouped, "removed", removed);
    addPart(grouped, "added", added);
    removed = added = "";
  };
  parts.forEach((part, index) => {
    const isGap =
      part.kind === "same" && /^[^\S\n]+$/.test(part.text) && (removed || added) && index < parts.length - 1;
    if (part.kind === "removed") removed += part.text;
    else if (part.kind === "added") added += part.text;
    else if (isGap) {
      removed += part.text;
      added += part.text;
    } else {
      flush();
      addPart(grouped, "same", part.text);
    }
  });
  flush();
  return grouped;
}

// The difference between two texts, line by line.

/** The most cells of the table of common subsequences; larger texts are shown as removed and added. */
const MOST_CELLS = 4_000_000;
/** Unchanged lines that are shown around a change. */
const AROUND = 3;

/** Return [mark, line] for every line: " " unchanged, "-" only in `before`, "+" only in `after`. */
function diffLines(before, after) {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const middle = diffMiddle(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  const same = (line) => [" ", line];
  return [...a.slice(0, head).map(same), ...middle, ...a.slice(a.length - tail).map(same)];
}

/** Return the difference of two lists of lines by their longest common subsequence. */
function diffMiddle(a, b) {
  if (a.length * b.length > MOST_CELLS) {
    return [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])];
  }
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1] + 1
          : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const lines = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push([" ", a[i]]);
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      lines.push(["-", a[i]]);
      i += 1;
    } else {
      lines.push(["+", b[j]]);
      j += 1;
    }
  }
  return lines;
}

/** Return the lines near a change; a longer part without changes is one line that says how many are left out. */
function nearChanges(lines) {
  const near = new Set();
  lines.forEach(([mark], at) => {
    if (mark === " ") return;
    for (let i = at - AROUND; i <= at + AROUND; i += 1) near.add(i);
  });
  const shown = [];
  let skipped = 0;
  const flush = () => {
    if (skipped) shown.push(["@", `${skipped} unchanged line${skipped > 1 ? "s" : ""}`]);
    skipped = 0;
  };
  lines.forEach((line, at) => {
    if (near.has(at)) {
      flush();
      shown.push(line);
    } else {
      skipped += 1;
    }
  });
  flush();
  return shown;
}

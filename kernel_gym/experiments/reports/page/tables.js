// Tables that sort by a column: each header gets a button, so that mouse and keyboard work alike.

const NUMBER = /^[+-]?\d[\d,]*(\.\d+)?/;

/** Return what a cell sorts by: a number where its text begins with one, "2/3" as a share, "-" as nothing. */
function sortKey(cell) {
  const shown = [...cell.querySelectorAll("[data-measure]")].find((part) => getComputedStyle(part).display !== "none");
  const text = (shown || cell).textContent.trim();
  const share = text.match(/^(\d+)\/(\d+)$/);
  if (share) return Number(share[1]) / Number(share[2]);
  const number = text.match(NUMBER);
  if (number) return Number(number[0].replaceAll(",", ""));
  return text === "-" || text === "" ? null : text.toLowerCase();
}

/** Compare two keys; cells without a value come last in both directions. */
function compareKeys(a, b, direction) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return direction * (a - b);
  return direction * String(a).localeCompare(String(b), undefined, { numeric: true });
}

function sortBy(table, column, direction) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, key: sortKey(row.cells[column]) }));
  rows.sort((a, b) => compareKeys(a.key, b.key, direction));
  body.append(...rows.map(({ row }) => row));
  [...table.tHead.rows[0].cells].forEach((head, i) => {
    if (i === column) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    else head.removeAttribute("aria-sort");
  });
}

function makeSortable(table) {
  if (table.tBodies[0].rows.length < 2) return;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      sortBy(table, column, head.getAttribute("aria-sort") === "ascending" ? -1 : 1);
    });
  });
}

document.querySelectorAll("table").forEach(makeSortable);

// The matrix shows one measure at a time.
document.querySelectorAll(".measures input").forEach((choice) => {
  choice.addEventListener("change", () => {
    document.querySelector("table.matrix").dataset.shows = choice.value;
  });
});

// What a reader can do with the page: hide engines, and sort tables by a column. The page is complete
// without this script; its policy allows no other.
"use strict";

// Rows of pictures move up into the place of hidden ones.
const stack = (picture) => {
  let top = 0;
  for (const row of picture.querySelectorAll(":scope > g")) {
    if (row.classList.contains("gone")) continue;
    row.setAttribute("transform", `translate(0 ${top})`);
    top += Number(row.dataset.height);
  }
  picture.classList.toggle("gone", top === 0);
  picture.setAttribute("viewBox", `0 0 ${picture.viewBox.baseVal.width} ${top}`);
};

// What one box says happens to everything of its engine in its comparison.
const apply = (box) => {
  const { comparison } = box.closest("[data-comparison]").dataset;
  for (const part of document.querySelectorAll(`[data-comparison="${comparison}"]`)) {
    for (const element of part.querySelectorAll(`[data-column="${box.dataset.of}"]`))
      element.classList.toggle("gone", !box.checked);
    const rows = [...part.querySelectorAll("g[data-height]")];
    new Set(rows.map((row) => row.parentNode)).forEach(stack);
  }
};

const boxes = [...document.querySelectorAll("fieldset.choice input")];
for (const box of boxes) {
  box.closest("fieldset").hidden = false;
  // An engine may be in several comparisons. A browser may bring back what was chosen before.
  box.addEventListener("change", () => {
    for (const other of boxes.filter((other) => other.value === box.value)) {
      other.checked = box.checked;
      apply(other);
    }
  });
  if (!box.checked) apply(box);
}

// What a cell is sorted by: its figure, or else its text; null if it says that there is none.
const key = (cell) => {
  const figure = cell.querySelector(":scope > data");
  if (figure) return Number(figure.value);
  return cell.querySelector(":scope > .absent, :scope > .mark") ? null : cell.textContent.trim();
};

const letters = new Intl.Collator("en", { numeric: true });
const compare = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : letters.compare(a, b);

// Sorts rows by a column; those without a figure stay behind in either direction.
const sorted = (rows, place, sign) => {
  const keyed = rows.map((row) => ({ row, key: key(row.cells[place]) }));
  const known = keyed.filter((one) => one.key !== null);
  const unknown = keyed.filter((one) => one.key === null);
  known.sort((a, b) => sign * compare(a.key, b.key));
  return [...known, ...unknown].map((one) => one.row);
};

for (const table of document.querySelectorAll("main table")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "Sort by this column";
    button.append(...head.childNodes);
    head.append(button);
    // Ascending, then descending, then as it was.
    button.addEventListener("click", () => {
      const order = { ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
      const next = order === undefined ? "ascending" : order;
      for (const other of heads) other.removeAttribute("aria-sort");
      if (next) head.setAttribute("aria-sort", next);
      body.append(...(next ? sorted(rows, place, next === "ascending" ? 1 : -1) : rows));
    });
  });
}

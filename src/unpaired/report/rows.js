"use strict";
(() => {
  const table = document.getElementById("pairs");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const first = new Map(rows.map((row, place) => [row, place]));
  const find = document.getElementById("find");
  const shown = document.getElementById("shown");
  const none = document.getElementById("none");
  const buttons = Array.from(document.querySelectorAll("#controls button"));
  const heads = Array.from(table.tHead.rows[0].cells);
  let kind = "all";

  function filter() {
    const wanted = find.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      const ofKind = kind === "all" || row.dataset.kind === kind || row.dataset.truth === kind;
      const names = `${row.cells[0].textContent}\n${row.cells[1].textContent}`.toLowerCase();
      row.hidden = !(ofKind && names.includes(wanted));
      count += row.hidden ? 0 : 1;
    }
    none.hidden = count > 0;
    shown.textContent = `${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows shown`;
  }

  function compare(left, right) {
    const numbers = [Number(left), Number(right)];
    const isNumber = numbers.map((value, side) => [left, right][side] !== "" && !Number.isNaN(value));
    if (isNumber[0] && isNumber[1]) return numbers[0] - numbers[1];
    if (isNumber[0] !== isNumber[1]) return isNumber[0] ? -1 : 1;
    return left.localeCompare(right);
  }

  function sort(column) {
    const head = heads[column];
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of heads) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const name = (cell) => (cell.querySelector(".name") || cell).textContent.trim();
    const text = new Map(rows.map((row) => [row, name(row.cells[column])]));
    rows.sort((a, b) => (up ? 1 : -1) * compare(text.get(a), text.get(b)) || first.get(a) - first.get(b));
    body.append(...rows);
  }

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(column));
    head.append(button);
  });
  for (const button of buttons) {
    button.addEventListener("click", () => {
      kind = button.dataset.kind;
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      filter();
    });
  }
  find.addEventListener("input", filter);
  document.getElementById("controls").hidden = false;
  filter();
})();

"use strict";
(function () {
  // tables sort on click: text by text, numbers by value, empty cells last
  function value(row, place) {
    var cell = row.cells[place], number = cell.dataset.sort;
    return number === undefined ? cell.textContent.trim() : number === "" ? null : Number(number);
  }
  document.querySelectorAll("main table").forEach(function (table) {
    table.querySelectorAll("thead th").forEach(function (head, place) {
      var button = head.querySelector("button");
      if (!button) return;
      button.disabled = false;
      button.addEventListener("click", function () {
        var down = head.getAttribute("aria-sort") !== "descending", body = table.tBodies[0];
        table.querySelectorAll("thead th").forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        Array.from(body.rows).sort(function (a, b) {
          var x = value(a, place), y = value(b, place);
          if (x === null || y === null) return (x === null) - (y === null);
          var order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
          return down ? -order : order;
        }).forEach(function (row) { body.appendChild(row); });
      });
    });
  });
  // a link into a folded section opens it; print opens all
  function open() {
    var target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (var node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    if (target) target.scrollIntoView();
  }
  window.addEventListener("hashchange", open);
  open();
  var opened = [];
  window.addEventListener("beforeprint", function () {
    opened = Array.from(document.querySelectorAll("main details:not([open]):not(.files)"));
    opened.forEach(function (each) { each.open = true; });
  });
  window.addEventListener("afterprint", function () { opened.forEach(function (each) { each.open = false; }); });
})();

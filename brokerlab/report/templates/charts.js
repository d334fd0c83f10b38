// Draws each chart of the page when it comes into view, as wide as its column; the SVG stays for print.
const NARROW = 560;

function wrap(text, columns) {
  if (typeof text !== "string" || text.length <= columns) return text;
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines[lines.length - 1];
    if (last && last.length + word.length >= columns) lines.push(word);
    else lines[lines.length - 1] = last ? last + " " + word : word;
  }
  return lines;
}

function wrapTitles(node, columns) {
  if (!node || typeof node !== "object") return;
  for (const [key, value] of Object.entries(node)) {
    if (key === "datasets" || key === "data" || key === "config") continue;
    if (key === "title") node.title = wrap(value, columns);
    else wrapTitles(value, columns);
  }
}

function longestName(node) {
  if (!node || typeof node !== "object") return 0;
  const names = Array.isArray(node.domain) ? node.domain.map((name) => String(name).length) : [];
  return Math.max(0, ...names, ...Object.entries(node).map(([key, value]) => (key === "datasets" ? 0 : longestName(value))));
}

function fit(original, available, natural) {
  const spec = structuredClone(original), small = available < NARROW, over = natural - available;
  delete spec.title;
  spec.background = "transparent";
  const columns = !small ? 5 : longestName(spec) > 20 ? 1 : 2;
  const size = small ? { labelFontSize: 10, labelLimit: available / 2 } : { labelLimit: 260 };
  spec.config.axis = { ...spec.config.axis, ...size };
  if (small) spec.config.axisX = { ...spec.config.axisX, titleAnchor: "end" };  // long names leave little room left of it
  spec.config.legend = { ...spec.config.legend, columns, labelLimit: small ? available / columns - 24 : 240 };
  wrapTitles(spec, small ? 38 : 90);
  const rows = spec.vconcat || (small && (spec.hconcat || spec.concat));
  if (rows) {
    for (const view of rows) if (view.width) view.width = Math.max(140, spec.vconcat ? view.width - over : available - 130);
    if (!spec.vconcat) { spec.vconcat = rows; delete spec.hconcat; delete spec.concat; delete spec.columns; }
  } else if (spec.hconcat || spec.concat) {
    const views = spec.hconcat || spec.concat;
    for (const view of views) if (view.width) view.width = Math.max(140, view.width - over / views.length);
  } else if (!spec.facet) {
    spec.width = available;
    spec.autosize = { type: "fit-x", contains: "padding" };
  }
  return spec;
}

function draw(figure) {
  const place = figure.querySelector(".vega"), source = figure.querySelector("script[type='application/json']");
  const natural = Number(figure.querySelector(".static svg").getAttribute("width")) || 700;
  const width = place.parentElement.clientWidth;
  if (!width || figure.dataset.drawn === String(width)) return;
  figure.dataset.drawn = String(width);
  const spec = fit(JSON.parse(source.textContent), width, natural);
  vegaEmbed(place, spec, { actions: false, renderer: "svg", tooltip: { theme: "light" } }).then(
    () => figure.classList.add("live"),
    (error) => { place.textContent = ""; console.error(error); }
  );
}

const figures = document.querySelectorAll("figure.chart:has(script[type='application/json'])");
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
}, { rootMargin: "400px" });
figures.forEach((figure) => seen.observe(figure));
let waiting;
window.addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => document.querySelectorAll("figure.live").forEach(draw), 200);
});

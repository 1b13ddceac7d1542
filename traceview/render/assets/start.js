// Draws every chart of the page.

const DRAW = { bars: drawBars, sizes: drawSizes, rates: drawRates, timeline: drawTimeline };

document.documentElement.classList.remove("no-script");
for (const canvas of document.querySelectorAll("[data-chart]")) {
  DRAW[canvas.dataset.chart](canvas, DATA[canvas.dataset.key]);
}
followThePage();

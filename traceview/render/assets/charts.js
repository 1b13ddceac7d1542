// The small charts: the accounting as bars, pieces by size, rate by size.

const CHART_HEIGHT = 280;
const CEILING_PLACES = ["insideStartTop", "insideEndTop", "insideMiddleTop"];
const BESIDE = { left: 8, right: 28, top: 28, bottom: 30, containLabel: true };

function drawBars(canvas, bars) {
  const categories = PALETTE.categories.filter(({ name }) => bars.some((bar) => nsOf(bar, name) > 0));
  canvas.style.height = `${58 + 46 * bars.length}px`;
  register(canvas, (colours) => ({
    grid: { left: 8, right: 36, top: 8, bottom: 8, containLabel: true },
    tooltip: tooltip(colours, ({ seriesName, data }) => barCard(bars, seriesName, data)),
    xAxis: axis(colours, {
      type: "value", splitNumber: labelsIn(canvas.clientWidth),
      axisLabel: { color: colours.muted, hideOverlap: true, formatter: (ms) => `${count(ms)} ms` },
    }),
    yAxis: axis(colours, {
      type: "category", inverse: true, data: bars.map(({ label }) => label),
      axisLabel: { color: colours.text, fontFamily: colours.font },
    }),
    series: categories.map(({ name, colour }) => ({
      name, type: "bar", stack: "time", barWidth: 26, itemStyle: { color: colour, borderColor: colours.edge, borderWidth: 0.5 },
      data: bars.map((bar) => ({ value: nsOf(bar, name) / 1e6, ns: nsOf(bar, name), bar: bar.label })),
      emphasis: { focus: "series" },
    })),
  }));
}

function nsOf(bar, category) {
  const part = bar.parts.find((one) => one.category === category);
  return part ? part.ns : 0;
}

function barCard(bars, name, { ns, bar }) {
  const total = bars.find(({ label }) => label === bar).parts.reduce((sum, part) => sum + part.ns, 0);
  const { phrase } = PALETTE.categories.find((category) => category.name === name);
  const share = `${((ns / total) * 100).toFixed(1)} % of ${duration(total)} ${bar}`;
  return card(name, [["", duration(ns)], ["", share], ["", phrase]]);
}

// A legend below a chart, as text that wraps where the page is narrow.
function legendBelow(canvas, entries) {
  const list = element("ul", "legend");
  for (const { label, colour } of entries) {
    const entry = element("li");
    const swatch = element("i", "swatch");
    swatch.style.background = PALETTE.series[colour];
    entry.append(swatch, element("span", "", label));
    list.append(entry);
  }
  canvas.after(list);
}

// Ends and steps of an axis of sizes in powers of two, such that every label is a whole one.
function sizeAxis(sizes) {
  const low = Math.floor(Math.log2(Math.max(1, Math.min(...sizes)))) - 1;
  const high = Math.ceil(Math.log2(Math.max(1, ...sizes))) + 1;
  const step = Math.max(1, Math.ceil((high - low) / 6));
  const from = Math.floor(low / step) * step;
  return { min: 2 ** from, max: 2 ** (from + Math.ceil((high - from) / step) * step), interval: step };
}

function drawSizes(canvas, { powers, series }) {
  canvas.style.height = `${CHART_HEIGHT}px`;
  legendBelow(canvas, series.map(({ label }, colour) => ({ label, colour })));
  register(canvas, (colours) => ({
    grid: BESIDE,
    tooltip: tooltip(colours, ({ seriesName, value, name }) => card(seriesName, [["from", name], ["pieces", count(value)]])),
    xAxis: axis(colours, { type: "category", data: powers.map(size), name: "from size", nameLocation: "middle", nameGap: 26 }),
    yAxis: axis(colours, { type: "log", min: 0.5, name: "pieces", axisLabel: { color: colours.muted, formatter: pieces } }),
    series: series.map(({ label, pieces: counts }, index) => ({
      name: label, type: "bar", barMaxWidth: 34, itemStyle: { color: PALETTE.series[index] },
      data: counts.map((number) => (number > 0 ? number : null)),
    })),
  }));
}

function pieces(value) {
  return value < 1 ? "" : count(Math.round(value));
}

function drawRates(canvas, { series, ceilings }) {
  const sizes = series.flatMap(({ points }) => points.map(([bytes]) => bytes));
  const top = ceilings.map((ceiling, index) => ({
    yAxis: ceiling.rate, ceiling,
    label: { formatter: `ceiling ${rate(ceiling.rate)}`, position: CEILING_PLACES[index], show: index < CEILING_PLACES.length },
  }));
  const across = sizeAxis(sizes);
  canvas.style.height = `${CHART_HEIGHT}px`;
  legendBelow(canvas, series);
  register(canvas, (colours) => ({
    grid: BESIDE,
    tooltip: tooltip(colours, (hovered) => rateCard(series, hovered)),
    xAxis: axis(colours, { type: "log", name: "size", nameLocation: "middle", nameGap: 26, logBase: 2, ...across,
      axisLabel: { color: colours.muted, formatter: size, hideOverlap: true } }),
    yAxis: axis(colours, { type: "value", min: 0, name: "GB/s",
      max: ({ max }) => (top.some((one) => one.yAxis > max) ? Math.ceil(Math.max(...top.map((one) => one.yAxis)) / 10 + 0.3) * 10 : null) }),
    series: series.flatMap((group, index) => rateSeries(group, PALETTE.series[group.colour], index ? [] : top, colours)),
  }));
}

function rateSeries({ label, points, fit }, colour, ceilings, colours) {
  const marks = {
    silent: false, symbol: "none", data: ceilings, lineStyle: { color: colours.strong, type: "dashed", width: 1 },
    label: { color: colours.text, fontFamily: colours.font },
  };
  const scatter = {
    name: label, type: "scatter", data: points, symbolSize: 9, itemStyle: { color: colour, opacity: 0.85 }, markLine: marks,
  };
  const line = {
    name: label, type: "line", data: fit, symbol: "none", lineStyle: { color: colour, width: 1.5 }, silent: true,
  };
  return fit ? [scatter, line] : [scatter];
}

function rateCard(series, { componentType, seriesName, value, data }) {
  if (componentType === "markLine") return card("ceiling", [["", rate(data.ceiling.rate)], ["", data.ceiling.label]]);
  const [bytes, median, low, high, number] = value;
  const { fitted } = series.find(({ label }) => label === seriesName);
  const spread = low === high ? "" : `${rate(low)} to ${rate(high)}`;
  return card(seriesName, [
    ["", `${size(bytes)} at ${rate(median)}`], ["from", spread], ["copies", count(number)], ["fit", fitted],
  ]);
}

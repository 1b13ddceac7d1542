// What all charts share: data, theme, tooltips made of text nodes, drawing again when the page changes.

const DATA = JSON.parse(document.getElementById("chart-data").textContent);
const PALETTE = DATA.palette;
const CHARTS = [];
const LABEL_APART = 95;
const LABELS_MOST_ON_AXIS = 8;
let printing = false;

function theme() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: read("text"), muted: read("muted"), line: read("line"), panel: read("panel"), strong: read("strong"), edge: read("edge"),
    font: style.getPropertyValue("--font").trim(),
  };
}

// Names from the trace reach the page as text nodes only.
function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// A tooltip: a heading and lines of [word, value].
function card(heading, lines) {
  const made = element("div", "tip");
  made.append(element("strong", "", heading));
  for (const [word, value] of lines) {
    if (value === "" || value === null || value === undefined) continue;
    const line = element("div");
    if (word) line.append(element("span", "muted", `${word} `));
    line.append(element("span", "", value));
    made.append(line);
  }
  return made;
}

function tooltip(colours, formatter) {
  return {
    trigger: "item", confine: true, formatter, transitionDuration: 0, enterable: false,
    backgroundColor: colours.panel, borderColor: colours.line, padding: 0, textStyle: { color: colours.text },
    extraCssText: "max-width:min(24rem,90vw);white-space:normal;overflow-wrap:anywhere",
  };
}

// About how many labels of a time axis stand beside each other in a width.
function labelsIn(width) {
  return Math.max(2, Math.min(LABELS_MOST_ON_AXIS, Math.floor(width / LABEL_APART)));
}

function axis(colours, more) {
  return {
    axisLine: { lineStyle: { color: colours.line } },
    axisTick: { show: false },
    axisLabel: { color: colours.muted, fontFamily: colours.font },
    splitLine: { lineStyle: { color: colours.line, opacity: 0.5 } },
    nameTextStyle: { color: colours.muted, fontFamily: colours.font },
    ...more,
  };
}

// `options(colours)` gives what ECharts draws; it is asked again when the theme changes.
function register(canvas, options, after) {
  const chart = echarts.init(canvas, null, { renderer: "canvas", devicePixelRatio: Math.max(2, devicePixelRatio || 1) });
  const entry = {
    canvas, chart,
    draw() {
      chart.setOption({ animation: false, textStyle: { fontFamily: theme().font }, ...options(theme()) }, true);
      if (after) after(chart);
    },
  };
  entry.draw();
  CHARTS.push(entry);
  return chart;
}

function redraw() {
  for (const { canvas, chart, draw } of CHARTS) {
    chart.resize(printing ? { width: 680 } : { width: canvas.clientWidth });
    draw();
  }
}

// On paper everything is dark on white, whatever the screen shows.
function print(on) {
  printing = on;
  document.documentElement.classList.toggle("paper", on);
  redraw();
}

function followThePage() {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  let pending = 0;
  addEventListener("resize", () => {
    if (printing) return;
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(redraw);
  });
}

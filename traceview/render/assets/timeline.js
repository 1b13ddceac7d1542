// A timeline: rows of boxes and the holes between them. ECharts draws, zooms and pans; this file says what is in view.

const WHAT = Object.fromEntries(PALETTE.whats.map((name, index) => [name, index]));
const ROW_HEIGHT = 40;
const MARGIN = 8;
const RIGHT = 26;
const LABELS_MOST = 250;
const WIDE = 700;
const TEXT_SIZE = 10.5;
const LABEL_SIZE = 12;
const SETTLED_MS = 120;

function column(values, length) {
  return typeof values === "number" ? new Float64Array(length).fill(values) : Float64Array.from(values);
}

// Columns come as differences and constants; see html_charts.py.
function unpack(packed) {
  const made = { size: packed.size };
  for (const [name, values] of Object.entries(packed)) {
    if (name !== "size") made[name] = column(values, packed.size);
  }
  for (let index = 1; index < packed.size; index += 1) made.start[index] += made.start[index - 1];
  return made;
}

// What is to be drawn between two times: neighbours closer than a pixel that look alike become one block.
// `order` is row by row; `kind` tells which neighbours look alike.
function inView(packed, kind, order, [low, high], pixel) {
  const blocks = [];
  let last = null;
  let things = 0;
  for (const index of order) {
    const start = packed.start[index];
    const end = start + packed.length[index];
    if (end < low || start > high) continue;
    things += packed.count[index];
    const row = packed.row[index];
    const near = last && last.row === row && start - last.end < pixel;
    if (near && (last.kind === kind(index) || end - last.start < pixel)) {
      last.alike &&= packed.name === undefined || packed.name[last.index] === packed.name[index];
      last.end = Math.max(last.end, end);
      last.members += 1;
      last.count += packed.count[index];
      last.idle += packed.idle[index];
      last.bytes += packed.bytes ? packed.bytes[index] : 0;
      last.busy += packed.length[index] - packed.idle[index];
      continue;
    }
    last = {
      index, row, start, end, kind: kind(index), members: 1, alike: true, count: packed.count[index], idle: packed.idle[index],
      busy: packed.length[index] - packed.idle[index], bytes: packed.bytes ? packed.bytes[index] : 0,
    };
    blocks.push(last);
  }
  const members = blocks.reduce((sum, block) => sum + block.members, 0);
  return { blocks, things, members };
}

class Timeline {
  constructor(canvas, data) {
    this.canvas = canvas;
    this.data = data;
    this.boxes = unpack(data.boxes);
    this.holes = unpack(data.holes);
    this.layerAt = new Map(data.layers.map((layer, position) => [layer, position]));
    const indices = (size) => Array.from({ length: size }, (_, index) => index);
    this.boxOrder = indices(this.boxes.size);
    this.holeOrder = indices(this.holes.size).sort((a, b) => this.holes.row[a] - this.holes.row[b] || a - b);
    this.largest = indices(this.holes.size).sort((a, b) => this.spent(b) - this.spent(a));
    this.at = -1;
    this.widths = new Map();
    this.all = this.firstView();
    this.view = this.all;
    this.drawn = { boxes: [], holes: [] };
    canvas.style.height = `${ROW_HEIGHT * data.rows.length + 98}px`;
    register(canvas, (colours) => this.options(colours), (chart) => {
      this.chart = chart;
      this.refresh();
    });
    this.chart.on("datazoom", () => this.changed());
    this.listen();
  }

  // The forward with a little of what led to it; the rest of the lead-in is a pan to the left.
  firstView() {
    const { start, end, marks } = this.data;
    const last = Math.max(...marks.map(({ at }) => at));
    return marks.length ? [Math.max(start, -0.06 * last), end + 0.01 * (end - Math.max(start, 0))] : [start, end];
  }

  spent(hole) {
    return this.holes.length[hole] - this.holes.idle[hole];
  }

  labelWidth(colours) {
    this.colours = colours;
    const widest = Math.max(...this.data.rows.map(({ label }) => this.widthOf(label, LABEL_SIZE)));
    return Math.min(LABELS_MOST, Math.ceil(widest) + 22);
  }

  narrow() {
    return this.canvas.clientWidth < WIDE;
  }

  options(colours) {
    const left = this.narrow() ? MARGIN : this.labelWidth(colours);
    this.left = left;
    const { start, end, rows } = this.data;
    this.colours = colours;
    const over = Math.max(end, this.all[1]);
    return {
      grid: { left, right: RIGHT, top: 38, bottom: 54 },
      tooltip: tooltip(colours, (hovered) => this.hover(hovered)),
      xAxis: axis(colours, {
        type: "value", min: Math.min(start, this.all[0]) / 1e6, max: over / 1e6,
        axisLabel: { color: colours.muted, hideOverlap: true, formatter: (ms) => this.label(ms) },
        splitNumber: labelsIn(this.canvas.clientWidth - left),
      }),
      yAxis: axis(colours, {
        type: "category", inverse: true, data: rows.map(({ label }) => label), splitLine: { show: false },
        splitArea: { show: true, areaStyle: { color: ["transparent", "rgba(128,128,128,0.07)"] } },
        axisLabel: {
          color: colours.text, fontFamily: colours.font, interval: 0, width: left - 16, overflow: "truncate",
          inside: this.narrow(), verticalAlign: this.narrow() ? "bottom" : "middle", padding: this.narrow() ? [0, 0, 8, 0] : 0,
          fontSize: LABEL_SIZE, show: !this.narrow(),
        },
      }),
      dataZoom: this.zooms(colours),
      series: [
        this.series("holes", 2, (params, api) => this.holeShape(params, api), this.marks(colours)),
        this.series("boxes", 3, (params, api) => this.boxShape(params, api)),
        { ...this.series("arrows", 4, (params, api) => this.arrowShape(params, api)), silent: true, data: this.arrows() },
        { ...this.series("labels", 5, (params, api) => this.rowLabel(params, api)), silent: true,
          data: this.narrow() ? rows.map((_, row) => [0, row]) : [] },
      ],
    };
  }

  zooms(colours) {
    const [low, high] = this.view;
    const common = { xAxisIndex: 0, filterMode: "none", startValue: low / 1e6, endValue: high / 1e6, minValueSpan: 1e-4 };
    return [
      { ...common, type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseMove: true, moveOnMouseWheel: false,
        preventDefaultMouseMove: false, throttle: 16 },
      { ...common, type: "slider", show: !printing, bottom: 6, height: 18, showDetail: false, brushSelect: false, throttle: 16,
        borderColor: colours.line, fillerColor: "rgba(128,128,128,0.18)", showDataShadow: false,
        handleStyle: { color: colours.panel, borderColor: colours.muted }, moveHandleSize: 4 },
    ];
  }

  series(id, z, renderItem, more) {
    // drawn at once: in pieces, rows would appear one after the other at each step of a zoom
    return { id, type: "custom", z, clip: true, progressive: 0, renderItem, data: [], encode: { x: [0, 1], y: 2 }, ...more };
  }

  marks(colours) {
    const { marks } = this.data;
    if (!marks.length) return {};
    // every second label a line higher, so that close marks stay readable
    const lines = [...marks].sort((a, b) => a.at - b.at).map(({ at, label }, index) => ({
      xAxis: at / 1e6, name: label, label: { distance: 4 + (index % 2) * 13 },
    }));
    return {
      markArea: this.between(),
      markLine: {
        silent: true, symbol: "none", data: lines, lineStyle: { color: colours.muted, type: "dashed", width: 1 },
        label: { formatter: ({ name }) => name, color: colours.muted, fontFamily: colours.font, position: "start" },
      },
    };
  }

  // The time between the ends of two forwards.
  between() {
    const { between } = this.data;
    if (!between) return undefined;
    return {
      silent: true, itemStyle: { color: `${PALETTE.changes[between.verdict] || "#808080"}29` },
      data: [[{ xAxis: between.from / 1e6 }, { xAxis: between.to / 1e6 }]],
    };
  }

  // Only round values have a label: an end of the axis is wherever the view ends.
  label(ms) {
    const apart = (this.view[1] - this.view[0]) / 1e6 / 10;
    const written = milliseconds(ms, apart);
    return Math.abs(Number(written.replaceAll(",", "")) - ms) < apart / 1e3 ? `${written} ms` : "";
  }

  // Puts what is in view into the series.
  refresh() {
    const width = Math.max(50, this.canvas.clientWidth - this.left - RIGHT);
    const pixel = (this.view[1] - this.view[0]) / width;
    const { boxes, holes } = this;
    // host calls and ranges are told apart by name, operations by layer
    const kind = (index) => boxes.what[index] * 1e9 + (boxes.what[index] >= WHAT.call ? boxes.name[index] : boxes.layer[index]);
    const category = (index) => holes.category[index] * 1e9 + holes.layer[index];
    const shownBoxes = inView(boxes, kind, this.boxOrder, this.view, pixel);
    const shownHoles = inView(holes, category, this.holeOrder, this.view, pixel);
    this.drawn = { boxes: shownBoxes.blocks, holes: shownHoles.blocks };
    const values = (blocks) => blocks.map(({ start, end, row }) => [start / 1e6, end / 1e6, row]);
    this.chart.setOption({
      series: [{ id: "holes", data: values(shownHoles.blocks) }, { id: "boxes", data: values(shownBoxes.blocks) }],
    });
    this.tell(shownBoxes);
  }

  tell({ blocks, things, members }) {
    const note = this.canvas.parentElement.querySelector(".drawn");
    const words = [`${count(things)} operations, calls and ranges in view`];
    if (things > blocks.length) words.push(`drawn as ${count(blocks.length)} blocks`);
    if (members > blocks.length) words.push("zoom in to tell them apart");
    note.textContent = words.join(", ");
  }

  changed() {
    const { startValue, endValue } = this.chart.getOption().dataZoom[0];
    this.view = [startValue * 1e6, endValue * 1e6];
    cancelAnimationFrame(this.pending);
    this.pending = requestAnimationFrame(() => this.refresh());
  }

  show(low, high) {
    const least = 200;
    const from = Math.max(Math.min(this.data.start, this.all[0]), Math.min(low, high - least));
    const until = Math.min(Math.max(this.data.end, this.all[1]), Math.max(high, from + least));
    this.chart.dispatchAction({ type: "dataZoom", startValue: from / 1e6, endValue: until / 1e6 });
    this.changed();
  }

  shape(params, api, height, least) {
    const [left, middle] = api.coord([api.value(0), api.value(2)]);
    const [right] = api.coord([api.value(1), api.value(2)]);
    const tall = api.size([0, 1])[1] * height;
    const raw = { x: left, y: middle - tall / 2, width: Math.max(right - left, least), height: tall };
    return echarts.graphic.clipRectByRect(raw, params.coordSys);
  }

  holeShape(params, api) {
    const block = this.drawn.holes[params.dataIndex];
    const shape = block && this.shape(params, api, 0.94, 1);
    if (!shape) return null;
    const { name, colour } = PALETTE.categories[this.holes.category[block.index]];
    const edge = shape.width > 3 ? { stroke: this.colours.edge, lineWidth: 0.5 } : {};
    return this.rectangle(shape, { fill: colour, opacity: 0.9, ...edge }, name, colour);
  }

  boxShape(params, api) {
    const block = this.drawn.boxes[params.dataIndex];
    const { boxes } = this;
    if (!block) return null;
    const what = boxes.what[block.index];
    const shape = this.shape(params, api, what === WHAT.range ? 0.5 : 0.66, 0.8);
    if (!shape) return null;
    const layer = boxes.layer[block.index];
    const colour = this.colourOf(what, layer);
    const change = this.changeOf(boxes.row[block.index], what, layer);
    const edge = change ? { stroke: PALETTE.changes[change], lineWidth: 2.5 } : { stroke: this.colours.edge, lineWidth: 0.5 };
    const style = shape.width > 3 ? { fill: colour, ...edge } : { fill: colour };
    return this.rectangle(shape, style, this.textOf(block, what, layer), colour);
  }

  rectangle(shape, style, text, colour) {
    const fits = text && shape.width > this.widthOf(text) + 6;
    return {
      type: "rect", shape, style,
      textContent: fits
        ? { style: { text, fill: inkOn(colour), fontSize: TEXT_SIZE, fontFamily: this.colours.font } }
        : undefined,
      textConfig: { position: "inside" },
      emphasis: { style: { stroke: this.colours.strong, lineWidth: 1.5 } },
    };
  }

  // Whether a comparison found that the load or the compute of this layer changed: "improved", "regressed" or nothing.
  changeOf(row, what, layer) {
    const found = this.data.changes.find((one) => one.row <= row && one.what === PALETTE.whats[what] && one.layer === layer);
    return found ? found.verdict : "";
  }

  widthOf(text, size = TEXT_SIZE) {
    const key = `${size} ${text}`;
    if (!this.pen) this.pen = document.createElement("canvas").getContext("2d");
    this.pen.font = `${size}px ${this.colours.font}`;
    if (!this.widths.has(key)) this.widths.set(key, this.pen.measureText(text).width);
    return this.widths.get(key);
  }

  colourOf(what, layer) {
    const layered = what === WHAT.load || what === WHAT.compute;
    if (layered && this.layerAt.has(layer)) return this.data.layerColours[this.layerAt.get(layer)];
    return PALETTE.boxes[what];
  }

  textOf(block, what, layer) {
    const mixed = this.data.rows[block.row].kind === "compute";
    if (mixed && what === WHAT.load && layer >= 0) return `load ${layer}`;
    if (what === WHAT.load || what === WHAT.compute) return layer >= 0 ? `L${layer}` : this.nameOf(block);
    return this.nameOf(block);
  }

  nameOf({ index, alike }) {
    const name = this.boxes.name[index];
    return !alike || name < 0 ? "" : this.data.names[name];
  }

  arrows() {
    return this.data.arrows.map(([fromRow, from, toRow, to]) => [from / 1e6, to / 1e6, toRow, fromRow]);
  }

  arrowShape(params, api) {
    const [x1, y1] = api.coord([api.value(0), api.value(3)]);
    const [x2, y2] = api.coord([api.value(1), api.value(2)]);
    const { x, width } = params.coordSys;
    if (Math.max(x1, x2) < x || Math.min(x1, x2) > x + width) return null;
    const half = (api.size([0, 1])[1] * 0.66) / 2;
    const down = y2 > y1 ? 1 : -1;
    const points = [[x1, y1 + down * half], [x1, y1 + down * (half + 5)], [x2, y2 - down * (half + 5)], [x2, y2 - down * half]];
    return {
      type: "polyline", shape: { points }, silent: true,
      style: { stroke: this.colours.muted, lineWidth: 1, opacity: 0.75, fill: "none" },
    };
  }

  rowLabel(params, api) {
    const row = api.value(1);
    const top = api.coord([0, row])[1] - api.size([0, 1])[1] / 2;
    return {
      type: "text", silent: true,
      style: {
        x: params.coordSys.x + 3, y: top, text: this.data.rows[row].label, fill: this.colours.text, fontSize: 9.5,
        fontFamily: this.colours.font, backgroundColor: this.colours.panel, padding: [1, 3], borderRadius: 2, opacity: 0.85,
      },
    };
  }

  hover({ seriesId, dataIndex }) {
    if (seriesId === "holes") return this.holeCard(this.drawn.holes[dataIndex]);
    return this.boxCard(this.drawn.boxes[dataIndex]);
  }

  holeCard(block) {
    const { holes, data } = this;
    const { name, phrase } = PALETTE.categories[holes.category[block.index]];
    const layer = holes.layer[block.index];
    const cause = holes.cause[block.index];
    const same = block.members === 1 && cause >= 0;
    const load = name === "load_copy" || name === "load_gap";
    return card(name, [
      ["", `${duration(block.busy)} idle${block.count > 1 ? ` in ${count(block.count)} holes` : ""}`],
      ["", phrase],
      [name === "host" ? "in range" : "waits for",
        same ? data.names[cause] : load && layer >= 0 ? `load of layer ${layer}` : ""],
      ["before layer", layer >= 0 && block.members === 1 ? String(layer) : ""],
      ["at", `${(block.start / 1e6).toFixed(3)} ms`],
    ]);
  }

  boxCard(block) {
    const { boxes, data } = this;
    const { index } = block;
    const what = PALETTE.whats[boxes.what[index]];
    const several = block.count > 1;
    const bytes = several && what === "compute" ? 0 : block.bytes;
    const queued = boxes.queued[index];
    const named = this.nameOf(block) || (several ? `${count(block.count)} × ${what}` : what);
    return card(named, [
      ["", several && this.nameOf(block) ? `${count(block.count)} × ${what}` : what],
      ["layer", boxes.layer[index] >= 0 ? String(boxes.layer[index]) : ""],
      ["", bytes ? `${size(bytes)} at ${rate(bytes / Math.max(1, block.busy))}` : ""],
      ["", duration(block.end - block.start) + (several ? `, ${duration(block.busy)} of it busy` : "")],
      ["launched", !several && queued >= 0 ? `${duration(queued)} before it started` : ""],
      ["at", `${(block.start / 1e6).toFixed(3)} ms`],
      ["against base", this.changeOf(boxes.row[index], boxes.what[index], boxes.layer[index])],
    ]);
  }

  zoom(factor) {
    const [low, high] = this.view;
    const middle = (low + high) / 2;
    const half = ((high - low) / 2) * factor;
    this.show(middle - half, middle + half);
  }

  pan(share) {
    const [low, high] = this.view;
    const room = share < 0 ? Math.min(this.data.start, this.all[0]) - low : Math.max(this.data.end, this.all[1]) - high;
    const by = share < 0 ? Math.max(share * (high - low), room) : Math.min(share * (high - low), room);
    this.show(low + by, high + by);
  }

  reset() {
    this.show(...this.all);
  }

  // Goes to a hole of the trace, by its index.
  showHole(hole) {
    const low = this.holes.start[hole];
    const length = this.holes.length[hole];
    this.at = this.largest.indexOf(hole);
    this.show(low - 1.5 * length, low + 2.5 * length);
    cancelAnimationFrame(this.pending);
    this.refresh();
    this.tellHole(low, low + length);
    // again when the page has come to rest: it may have scrolled a box under the mouse
    clearTimeout(this.later);
    this.later = setTimeout(() => this.tellHole(low, low + length), SETTLED_MS);
  }

  tellHole(from, until) {
    const shown = this.drawn.holes.findIndex(({ start, end }) => start <= from && end >= until);
    if (shown >= 0) this.chart.dispatchAction({ type: "showTip", seriesIndex: 0, dataIndex: shown });
  }

  step(by) {
    if (!this.largest.length) return;
    this.at = (this.at + by + this.largest.length) % this.largest.length;
    this.showHole(this.largest[this.at]);
  }

  act(name) {
    const acts = {
      in: () => this.zoom(0.5), out: () => this.zoom(2), left: () => this.pan(-0.25), right: () => this.pan(0.25),
      all: () => this.reset(), next: () => this.step(1), previous: () => this.step(-1),
    };
    acts[name]();
  }

  listen() {
    const keys = {
      ArrowLeft: "left", ArrowRight: "right", "+": "in", "=": "in", "-": "out", 0: "all", Home: "all", n: "next", N: "next",
      p: "previous", P: "previous",
    };
    // ECharts takes every turn of the wheel, also those that it does nothing with: the page scrolls with them
    for (const wheel of ["wheel", "mousewheel"]) {
      this.canvas.addEventListener(wheel, (event) => event.ctrlKey || event.stopPropagation(), { capture: true });
    }
    this.canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
      event.preventDefault();
      this.act(keys[event.key]);
    });
    for (const button of this.canvas.parentElement.querySelectorAll("[data-do]")) {
      button.addEventListener("click", () => this.act(button.dataset.do));
    }
    for (const button of document.querySelectorAll(`[data-show="${CSS.escape(this.canvas.dataset.key)}"]`)) {
      button.addEventListener("click", () => {
        this.canvas.scrollIntoView({ block: "center" });
        this.canvas.focus({ preventScroll: true });
        this.showHole(Number(button.dataset.hole));
      });
    }
  }
}

// Black or white, whichever reads better on a colour; the rule of palette.py.
function inkOn(colour) {
  const channels = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
  const [r, g, b] = channels.map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b < 0.179 ? "#ffffff" : "#000000";
}

function drawTimeline(canvas, data) {
  return new Timeline(canvas, data);
}

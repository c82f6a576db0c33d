"use strict";

/** Curves of a set-up: window, queue, goodput and delay over time, drawn by uPlot. */

/** Height of a plot in pixels: lower where two are above the settings. */
const heightOf = () =>
  document.body.classList.contains("two") && matchMedia("(max-width: 60rem)").matches ? 130 : 190;
/** Time over which a goodput is the mean, s. */
const GOODPUT_S = 0.5;
/** Flows whose curves are drawn. */
const MAX_FLOWS = 24;
const KINDS = [
  { name: "window", title: "Congestion window", unit: "segments" },
  { name: "queue", title: "Queue", unit: "packets" },
  { name: "goodput", title: "Goodput", unit: "Mbit/s, over half a second" },
  { name: "delay", title: "Delay", unit: "ms" },
];

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colourOf = (number) => css(`--line-${number % 7}`);
const dashOf = (number) => [[], [8, 3], [2, 2], [8, 3, 2, 3]][Math.floor(number / 7) % 4];

/** Rows of a table where a column has this value. */
const rowsOf = (table, column, value) => {
  const rows = [];
  table[column].forEach((found, row) => found === value && rows.push(row));
  return rows;
};

/** Increases of a counter from sample to sample. */
const increases = (counts) => counts.map((count, row) => count - (row ? counts[row - 1] : 0));

/** Curves of tables, by kind: labels, times in s, and values. `link` is a link's name. */
function curvesOf(tables, link) {
  const flows = tables.flow_series;
  const links = tables.link_series;
  const ofLink = rowsOf(links, "link", link);
  const times = Float64Array.from(ofLink, (row) => links.time_s[row]);
  const place = new Map(Array.from(times, (time, row) => [time, row]));
  const numbers = [...new Set(flows.flow_id)].sort((a, b) => a - b).slice(0, MAX_FLOWS);
  const sizes = new Map();
  const lines = numbers.map((number) => {
    const rows = rowsOf(flows, "flow_id", number);
    const group = flows.group[rows[0]];
    sizes.set(group, (sizes.get(group) ?? 0) + 1);
    return { rows, group, number: sizes.get(group) };
  });
  lines.forEach((each) => {
    each.label = sizes.get(each.group) > 1 ? `${each.group} ${each.number}` : each.group;
  });
  const groups = [...sizes.keys()];
  const colour = ({ group }, n) => (groups.length > 1 ? groups.indexOf(group) : n);
  // Flows that start later have no rows before.
  const spread = (rows, value) => {
    const values = new Array(times.length).fill(null);
    rows.forEach((row, n) => {
      const found = value(row, rows, n);
      values[place.get(flows.time_s[row])] = Number.isNaN(found) ? null : found;
    });
    return values;
  };
  const ofFlows = (value) =>
    lines.map((line, n) => ({
      label: line.label,
      colour: colour(line, n),
      values: spread(line.rows, value),
    }));
  const ofColumn = (column, factor) =>
    ofLink.map((row) => (Number.isNaN(links[column][row]) ? null : links[column][row] * factor));
  const goodput = (row, rows, n) => {
    let before = n - 1;
    const since = (earlier) => flows.time_s[row] - flows.time_s[rows[earlier]];
    while (before > 0 && since(before) < GOODPUT_S - 1e-9) before--;
    if (before < 0) return NaN;
    const [bytes, time] = [flows.delivered, flows.time_s];
    return ((bytes[row] - bytes[rows[before]]) * 8e-6) / (time[row] - time[rows[before]]);
  };
  const queue = ofColumn("qlen_pkts", 1);
  const hits = (column) => {
    const counts = increases(ofColumn(column, 1));
    return queue.map((length, row) => (counts[row] > 0 ? length : null));
  };
  return {
    times,
    window: ofFlows((row) => flows.snd_cwnd_pkts[row]),
    queue: [
      { label: "waiting", colour: "ink", values: queue },
      { label: "marked", mark: "circle", colour: 1, values: hits("mark") },
      { label: "dropped", mark: "cross", colour: 3, values: hits("drop") },
    ],
    goodput: ofFlows(goodput),
    delay: [
      { label: "queue", colour: "ink", values: ofColumn("sojourn_us", 1e-3) },
      ...ofFlows((row) => flows.srtt_us[row] / 1e3).map((each) => ({
        ...each,
        label: `RTT ${each.label}`,
      })),
    ],
    omitted: new Set(flows.flow_id).size - numbers.length,
  };
}

const compact = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, useGrouping: false });

/** The plots of one set-up. `shared` has what all plots share: ends of the axes, zoom. */
class Plots {
  constructor(place, name, shared) {
    this.name = name;
    this.shared = shared;
    this.drawn = {};
    this.key = "";
    place.replaceChildren(
      ...KINDS.map((kind) => {
        const figure = document.createElement("figure");
        const caption = document.createElement("figcaption");
        caption.innerHTML = `<b>${kind.title}</b> <span>${kind.unit}</span>`;
        const plot = document.createElement("div");
        plot.className = "plot";
        plot.tabIndex = 0;
        plot.setAttribute("role", "img");
        plot.setAttribute("aria-label", `${kind.title} of set-up ${name} over time, ${kind.unit}. \
Arrow keys move the cursor, plus and minus zoom, Escape shows all.`);
        plot.addEventListener("keydown", (event) => this.press(kind.name, event));
        figure.append(caption, plot);
        this.drawn[kind.name] = { place: plot, plot: null };
        return figure;
      }),
    );
    new ResizeObserver(() => this.resize()).observe(place);
  }

  /** Shows curves of the tables of a run. */
  show(curves) {
    this.curves = curves;
    const key = JSON.stringify(KINDS.map(({ name }) => curves[name].map(({ label }) => label)));
    if (key !== this.key) this.rebuild();
    this.key = key;
    this.draw();
  }

  draw() {
    if (!this.curves) return;
    for (const { name } of KINDS) {
      const data = [this.curves.times, ...this.curves[name].map(({ values }) => values)];
      this.drawn[name].plot?.setData(data);
    }
  }

  /** Creates all plots again, in the colours of the page. */
  rebuild() {
    if (!this.curves) return;
    this.ink = css("--ink");
    for (const { name } of KINDS) {
      const drawn = this.drawn[name];
      drawn.plot?.destroy();
      drawn.plot = new uPlot(this.options(name, drawn.place), null, drawn.place);
    }
  }

  options(name, place) {
    const { shared } = this;
    const axis = {
      stroke: css("--muted"),
      grid: { stroke: css("--rule"), width: 1 },
      ticks: { show: false },
      font: "12px system-ui, sans-serif",
    };
    return {
      width: place.clientWidth,
      height: heightOf(),
      padding: [8, 16, 0, 0],
      cursor: {
        sync: { key: "cwnd", setSeries: false },
        drag: { x: true, y: false, setScale: false },
        points: { size: 6 },
        bind: { dblclick: () => () => shared.zoomTo(null) },
      },
      scales: {
        x: { time: false, range: () => shared.zoom ?? [0, shared.end] },
        y: { range: () => [0, shared.tops[name]] },
      },
      axes: [
        { ...axis, size: 28, values: (_, ticks) => ticks.map((t) => `${compact.format(t)} s`) },
        { ...axis, size: 44, values: (_, ticks) => ticks.map((v) => compact.format(v)) },
      ],
      legend: {
        show: true,
        live: true,
        markers: { fill: (plot, n) => plot.series[n].stroke(plot, n) },
      },
      series: [
        { label: "time", value: (_, time) => (time === null ? "–" : `${compact.format(time)} s`) },
        ...this.curves[name].map(seriesOf),
      ],
      hooks: {
        setSelect: [
          (plot) => {
            const { left, width } = plot.select;
            if (width < 5) return;
            shared.zoomTo([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
      },
    };
  }

  press(name, event) {
    const { plot } = this.drawn[name];
    if (!plot) return;
    const times = this.curves.times;
    const [from, to] = this.shared.zoom ?? [0, this.shared.end];
    const at = plot.cursor.idx ?? times.findIndex((time) => time >= (from + to) / 2);
    const zoom = (factor) => {
      const middle = times[at] ?? (from + to) / 2;
      const half = ((to - from) / 2) * factor;
      const ends = [Math.max(0, middle - half), Math.min(this.shared.end, middle + half)];
      this.shared.zoomTo(ends[1] - ends[0] < this.shared.end ? ends : null);
    };
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
    if (event.key in moves) {
      const next = Math.min(Math.max(at + moves[event.key], 0), times.length - 1);
      plot.setCursor({ left: plot.valToPos(times[next], "x"), top: 10 });
    } else if (event.key === "+") zoom(0.5);
    else if (event.key === "-") zoom(2);
    else if (event.key === "Escape") this.shared.zoomTo(null);
    else return;
    event.preventDefault();
  }

  resize() {
    // Firefox has no colours while the frame around the page is hidden.
    if (this.curves && this.ink !== css("--ink")) {
      this.rebuild();
      this.draw();
    }
    for (const { place, plot } of Object.values(this.drawn)) {
      const size = { width: place.clientWidth, height: heightOf() };
      if (plot && size.width && (plot.width !== size.width || plot.height !== size.height))
        plot.setSize(size);
    }
  }
}

function seriesOf({ label, colour, mark }) {
  const stroke = colour === "ink" ? css("--ink") : colourOf(colour);
  const value = (_, found) => (found === null || found === undefined ? "–" : compact.format(found));
  const series = { label, stroke, value, width: 1.5, points: { show: false }, spanGaps: false };
  if (!mark) return { ...series, dash: colour === "ink" ? [] : dashOf(colour) };
  const points = { show: true, size: 7, stroke, fill: stroke, width: 1 };
  if (mark === "cross") points.paths = crosses;
  return { ...series, width: 0, paths: () => null, points };
}

/** Paths of crosses at the points of a series. */
function crosses(plot, number, from, to) {
  const path = new Path2D();
  const size = 3.5 * devicePixelRatio;
  for (let row = from; row <= to; row++) {
    const value = plot.data[number][row];
    if (value === null || value === undefined) continue;
    const x = plot.valToPos(plot.data[0][row], "x", true);
    const y = plot.valToPos(value, "y", true);
    path.moveTo(x - size, y - size);
    path.lineTo(x + size, y + size);
    path.moveTo(x + size, y - size);
    path.lineTo(x - size, y + size);
  }
  return { stroke: path, fill: null, flags: 2 | 1 };
}

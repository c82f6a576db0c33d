const read = (id) => JSON.parse(document.getElementById(id).textContent);
const palettes = read("palettes");
const specs = read("figures-data");
const dark = matchMedia("(prefers-color-scheme: dark)");
const failure = document.getElementById("failure");
let printing = false;

const palette = () => palettes[dark.matches && !printing ? "dark" : "light"];

/** Replaces the print colours of a specification by those of a palette. */
function coloured(spec, colours) {
  const own = new Map(
    Object.keys(palettes.light).map((name) => [palettes.light[name], colours[name]]),
  );
  const swap = (value) => {
    if (typeof value === "string") return own.get(value) ?? value;
    if (Array.isArray(value)) return value.map(swap);
    if (!value || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, swap(v)]));
  };
  return swap(spec);
}

/** Parses CSV tables of a layer, whose texts have no commas. Vega's own parser needs eval. */
function parsed(layer) {
  const { data, layer: parts } = layer;
  const found = { ...layer };
  if (parts) found.layer = parts.map(parsed);
  if (data?.format) {
    const [head, ...lines] = data.values.trimEnd().split("\n");
    const names = head.split(",");
    const value = (name, text) =>
      data.format.parse[name] === "string" ? text.slice(1, -1) : text === "" ? null : Number(text);
    const values = lines.map((each) =>
      Object.fromEntries(each.split(",").map((text, i) => [names[i], value(names[i], text)])),
    );
    found.data = { name: data.name, values };
  }
  return found;
}

// Without a hovering pointer the buttons are always visible, and need room of their own.
const hovers = matchMedia("(hover: hover)").matches;

function config(colours, left, width) {
  const text = {
    labelColor: colours.muted,
    titleColor: colours.ink,
    labelFontSize: 11,
    titleFontSize: 12,
  };
  const lines = {
    domainColor: colours.muted,
    tickColor: colours.muted,
    gridColor: colours.rule,
    tickSize: 4,
  };
  return {
    font: getComputedStyle(document.body).fontFamily,
    background: colours.paper,
    padding: { left: 2, right: 12, top: hovers || printing ? 8 : 30, bottom: 2 },
    view: { stroke: null },
    tick: { opacity: 1 },
    mark: { aria: false },
    axis: {
      ...text,
      ...lines,
      titleFontWeight: "normal",
      labelLimit: 0,
      titleLimit: 0,
      labelLineHeight: 14,
      titleLineHeight: 14,
      titlePadding: 6,
      aria: false,
    },
    axisX: { tickCount: Math.max(2, Math.round(width / 70)) },
    axisY: { minExtent: left, tickCount: 6 },
  };
}

/** Conversion between values and coordinates: logarithms on a logarithmic axis. */
const scale = (log) =>
  log ? { to: Math.log10, from: (at) => 10 ** at } : { to: Number, from: Number };

const short = (value) => String(Number(value.toPrecision(4)));

/** A panel with its drawing, texts at the pointer, and zoom. */
class Panel {
  constructor(figure, spec) {
    this.figure = figure;
    this.spec = spec;
    this.zoom = structuredClone(spec.ends);
    this.box = document.createElement("div");
    this.box.className = "panel";
    if (spec.title) this.box.append(this.part("h4", "", spec.title));
    this.plot = this.part("div", "plot");
    this.plot.style.height = `${spec.height}px`;
    this.plot.tabIndex = 0;
    this.plot.setAttribute("role", "img");
    this.plot.setAttribute("aria-label", spec.alt);
    this.drawing = this.part("div", "drawing");
    this.frame = this.part("div", "frame");
    this.moment = this.part("div", "moment");
    this.bubble = this.part("div", "bubble");
    this.buttons = this.part("div", "buttons");
    for (const [sign, name, act] of [
      ["+", "Zoom in", () => this.scaled(0.2, 0.8)],
      ["−", "Zoom out", () => this.scaled(-0.33, 1.33)],
      ["⤢", "Show all", () => this.figure.whole()],
      ["⤓", "Save as PNG", () => this.save()],
    ]) {
      const button = this.part("button", "", sign);
      button.type = "button";
      button.title = name;
      button.setAttribute("aria-label", name);
      button.addEventListener("click", act);
      this.buttons.append(button);
    }
    this.plot.append(this.drawing, this.frame, this.moment, this.bubble, this.buttons);
    this.box.append(this.plot);
    this.listen();
  }

  part(element, name, text = "") {
    const made = document.createElement(element);
    made.className = name;
    made.textContent = text;
    return made;
  }

  listen() {
    this.plot.addEventListener("keydown", (event) => this.key(event));
    this.drawing.addEventListener("pointerdown", (event) => {
      // A finger that moves over a figure scrolls the page; buttons zoom.
      if (event.pointerType === "touch" || event.button !== 0 || !this.view) return;
      this.drawing.setPointerCapture(event.pointerId);
      this.from = [event.clientX, event.clientY];
      event.preventDefault();
    });
    this.drawing.addEventListener("pointermove", (event) =>
      this.from ? this.drag(event) : this.point(event),
    );
    this.drawing.addEventListener("pointerup", (event) => this.drop(event));
    this.drawing.addEventListener("pointerleave", () => this.quiet());
    this.drawing.addEventListener("dblclick", () => this.figure.whole());
  }

  async draw(width) {
    const colours = palette();
    const spec = parsed(coloured(this.spec.spec, colours));
    const start = { hidden: this.hidden() };
    for (const side of ["x", "y"]) [start[`${side}_low`], start[`${side}_high`]] = this.zoom[side];
    spec.params = spec.params.map((each) => ({ ...each, value: start[each.name] ?? each.value }));
    let height = this.spec.height;
    spec.width = width;
    if (this.spec.ratio) {
      height = Math.min(height, width * this.spec.ratio);
      spec.width = height / this.spec.ratio;
    }
    spec.height = height;
    spec.autosize = { type: "fit", contains: "padding" };
    const turn = (this.turn = {});
    const { view } = await vegaEmbed(this.drawing, spec, {
      ast: true,
      actions: false,
      defaultStyle: false,
      tooltip: false,
      renderer: "svg",
      logLevel: 1,
      config: config(colours, this.figure.left(this.spec), spec.width),
    });
    // A later call has started drawing: this view is outdated.
    if (turn !== this.turn) return view.finalize();
    this.view?.finalize();
    this.view = view;
    this.points = undefined;
  }

  hidden() {
    const names = Object.entries(this.spec.labels);
    return names.filter(([, label]) => this.figure.hides(label)).map(([name]) => name);
  }

  hide() {
    this.points = undefined;
    return this.view?.signal("hidden", this.hidden()).runAsync();
  }

  /** Rectangle between the axes, in pixels of the window. */
  area() {
    return this.drawing.querySelector(".role-frame.root .background").getBoundingClientRect();
  }

  /** Value of an axis at a pixel of the window. */
  number(side, pixel) {
    const { left, right, top, bottom } = this.area();
    const part = side === "x" ? (pixel - left) / (right - left) : (bottom - pixel) / (bottom - top);
    return this.between(side, part);
  }

  between(side, part) {
    const { to, from } = scale(this.spec.log[side]);
    const [low, high] = this.zoom[side].map(to);
    return from(low + part * (high - low));
  }

  pixel(side, value) {
    const { to } = scale(this.spec.log[side]);
    const [low, high] = this.zoom[side].map(to);
    const { left, right, top, bottom } = this.area();
    const part = (to(value) - low) / (high - low);
    return side === "x" ? left + part * (right - left) : bottom - part * (bottom - top);
  }

  /** Moves both ends of x; the arguments are fractions of the axis. */
  scaled(from, until) {
    this.figure.move(this, "x", [this.between("x", from), this.between("x", until)]);
  }

  set(side, ends) {
    this.zoom[side] = ends;
    return this.view?.signal(`${side}_low`, ends[0]).signal(`${side}_high`, ends[1]).runAsync();
  }

  /** Rectangle of a drag; an axis with hardly any movement is selected whole. */
  dragged(event) {
    const area = this.area();
    const [x, y] = this.from;
    const across = Math.abs(event.clientX - x) > 8,
      down = Math.abs(event.clientY - y) > 8;
    const ends = (a, b, low, high) => [
      Math.max(Math.min(a, b), low),
      Math.min(Math.max(a, b), high),
    ];
    return {
      across,
      down,
      x: across ? ends(x, event.clientX, area.left, area.right) : [area.left, area.right],
      y: down ? ends(y, event.clientY, area.top, area.bottom) : [area.top, area.bottom],
    };
  }

  drag(event) {
    const { across, down, x, y } = this.dragged(event);
    this.quiet();
    if (across || down) this.put(this.frame, x[0], y[0], x[1] - x[0], y[1] - y[0]);
  }

  drop(event) {
    if (!this.from) return;
    const { across, down, x, y } = this.dragged(event);
    this.from = undefined;
    this.frame.style.display = "none";
    const found = {
      x: x.map((each) => this.number("x", each)),
      y: y.map((each) => this.number("y", each)).reverse(),
    };
    if (across && x[1] > x[0]) this.figure.move(this, "x", found.x);
    if (down && y[1] > y[0]) this.figure.move(this, "y", found.y);
  }

  put(element, x, y, width, height) {
    const { left, top } = this.plot.getBoundingClientRect();
    element.style.cssText = `display: block; left: ${x - left}px; top: ${y - top}px`;
    if (width !== undefined)
      Object.assign(element.style, { width: `${width}px`, height: `${height}px` });
  }

  quiet() {
    this.bubble.style.display = this.moment.style.display = "none";
  }

  /** Points of the visible lines. */
  values() {
    if (this.points) return this.points;
    const hidden = new Set(this.hidden());
    const rows = [],
      names = new Set();
    const find = (layers) =>
      layers.forEach((layer) => {
        if (layer.data?.name && layer.encoding?.y?.field === "y") names.add(layer.data.name);
        find(layer.layer ?? []);
      });
    find(this.spec.spec.layer);
    for (const name of names)
      rows.push(...this.view.data(name).filter(({ line, y }) => y !== null && !hidden.has(line)));
    return (this.points = rows);
  }

  point(event) {
    if (!this.view || event.pointerType === "touch") return;
    const area = this.area();
    const [x, y] = [event.clientX, event.clientY];
    const inside = x >= area.left && x <= area.right && y >= area.top && y <= area.bottom;
    this.quiet();
    const text = inside ? this.about(x, y) : "";
    if (!text) return;
    this.bubble.textContent = text;
    this.put(this.bubble, x + 14, y + 14);
    const over =
      this.bubble.getBoundingClientRect().right - document.documentElement.clientWidth + 4;
    if (over > 0) this.put(this.bubble, Math.max(x - 14 - this.bubble.offsetWidth, 2), y + 14);
  }

  /** Text at a position between the axes. */
  about(x, y) {
    const { texts } = this.spec;
    const shown = texts.filter((each) => !this.figure.hides(each[3]));
    if (texts.length) return this.nearest(shown, x, y);
    return this.figure.spec.about ? this.curve(x, y) : this.all(x);
  }

  /** Text of the nearest point, if it is within 20 pixels. */
  nearest(points, x, y) {
    let [least, found] = [20, ""];
    for (const [px, py, text] of points) {
      const far = Math.hypot(this.pixel("x", px) - x, this.pixel("y", py) - y);
      if (far < least) [least, found] = [far, text];
    }
    return found;
  }

  curve(x, y) {
    const points = this.values().map((row) => [row.x, row.y, row]);
    const row = this.nearest(points, x, y);
    if (!row) return "";
    const part = row.y < 0.001 ? row.y * 100 : Math.round(row.y * 1000) / 10;
    const said = this.figure.spec.about
      .replace("{x}", short(row.x))
      .replace("{y%}", `${short(part)} %`);
    const label = this.spec.labels[row.line];
    return label ? `${label}\n${said}` : said;
  }

  /** Values of all lines at the pointer's position along x. */
  all(pixel) {
    const at = this.number("x", pixel);
    const nearest = new Map();
    for (const row of this.values()) {
      const before = nearest.get(row.line);
      if (!before || Math.abs(row.x - at) < Math.abs(before.x - at)) nearest.set(row.line, row);
    }
    if (!nearest.size) return "";
    const rows = [...nearest.values()];
    const moment = rows.reduce((a, b) => (Math.abs(b.x - at) < Math.abs(a.x - at) ? b : a)).x;
    const { top, height } = this.area();
    const said = rows.map((row) =>
      [this.spec.labels[row.line], short(row.y)].filter(Boolean).join(": "),
    );
    this.put(this.moment, this.pixel("x", moment), top, 0, height);
    return [`${this.spec.moment}: ${short(moment)}`, ...said].join("\n");
  }

  key(event) {
    if (!this.view || event.target !== this.plot || event.ctrlKey || event.metaKey || event.altKey)
      return;
    const moves = {
      ArrowLeft: () => this.scaled(-0.2, 0.8),
      ArrowRight: () => this.scaled(0.2, 1.2),
      "+": () => this.scaled(0.2, 0.8),
      "=": () => this.scaled(0.2, 0.8),
      "-": () => this.scaled(-0.33, 1.33),
      0: () => this.figure.whole(),
      Home: () => this.figure.whole(),
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    moves[event.key]();
  }

  async save() {
    const link = document.createElement("a");
    const title = this.spec.title || this.figure.element.querySelector("h3").textContent;
    link.download = `${title}.png`;
    link.href = await this.view.toImageURL("png", 2);
    link.click();
  }
}

class Figure {
  constructor(element, spec) {
    this.element = element;
    this.spec = spec;
    this.choice = 0;
    // Hidden lines, by view.
    this.hidden = {};
    this.panels = [];
    this.seen = false;
    this.views = element.querySelector("select.views");
    this.labels = element.querySelector("select.labels");
    for (const select of [this.views, this.labels])
      select?.addEventListener("change", () => this.choose());
    this.offer();
    for (const button of element.querySelectorAll(".legend button")) {
      button.addEventListener("click", () => this.toggle(button));
    }
    this.place();
  }

  /** Creates the panels' boxes, so that nothing moves when they are drawn. */
  place() {
    const { columns, panels } = this.spec.choices[this.choice];
    const room = this.element.querySelector(".panels");
    for (const panel of this.panels) panel.view?.finalize();
    room.style.setProperty("--columns", columns);
    this.panels = panels.map((panel) => new Panel(this, panel));
    room.replaceChildren(...this.panels.map((panel) => panel.box));
  }

  /** Room for the labels of y ticks, chosen so that all panels' x axes are aligned. */
  left(panel) {
    const lines = ({ spec }) => [spec.encoding.y.axis?.title ?? []].flat().length;
    const most = Math.max(...this.spec.choices[this.choice].panels.map(lines));
    return panel.ratio ? 0 : 34 + 14 * (most - lines(panel));
  }

  draw() {
    this.seen = true;
    // All widths are read before anything is drawn, which avoids a page layout for each panel.
    const widths = this.panels.map((panel) => panel.plot.clientWidth);
    return Promise.all(this.panels.map((panel, index) => panel.draw(widths[index])));
  }

  /** Shows the chosen content of the chosen view, or the view's first one. */
  choose() {
    const { choices } = this.spec;
    const view = this.views ? this.views.value : choices[0].view;
    const there = choices.filter((each) => each.view === view);
    const label = this.labels?.value;
    this.choice = choices.indexOf(there.find((each) => each.label === label) ?? there[0]);
    for (const legend of this.element.querySelectorAll(".legend"))
      legend.hidden = legend.dataset.view !== view;
    this.offer();
    this.place();
    this.draw();
  }

  /** Disables the options that the view lacks. */
  offer() {
    const { label, view } = this.spec.choices[this.choice];
    if (!this.labels) return;
    const there = new Set(
      this.spec.choices.filter((each) => each.view === view).map((each) => each.label),
    );
    for (const option of this.labels.options)
      option.disabled = option.hidden = !there.has(option.value);
    this.labels.value = label;
  }

  hides(label) {
    return this.hidden[this.spec.choices[this.choice].view]?.has(label) ?? false;
  }

  toggle(button) {
    const name = button.dataset.line;
    const shown = button.getAttribute("aria-pressed") === "true";
    button.setAttribute("aria-pressed", String(!shown));
    const hidden = (this.hidden[this.spec.choices[this.choice].view] ??= new Set());
    if (shown) hidden.add(name);
    else hidden.delete(name);
    for (const panel of this.panels) panel.hide();
  }

  /** Sets the ends of an axis; zooming along x applies to all linked panels. */
  move(panel, side, ends) {
    const moved = side === "x" && this.spec.linked ? this.panels : [panel];
    for (const each of moved) each.set(side, [...ends]);
  }

  whole() {
    for (const panel of this.panels)
      for (const side of ["x", "y"]) panel.set(side, [...panel.spec.ends[side]]);
  }
}

async function load() {
  if (!("DecompressionStream" in window)) throw new Error("this browser is too old to unpack them");
  const packed = Uint8Array.from(atob(document.getElementById("library").textContent), (c) =>
    c.charCodeAt(0),
  );
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(unpacked).text();
  document.head.append(script);
}

function failed(error) {
  const text = `The figures could not be drawn: ${error.message}.`;
  failure.textContent = `${text} All tables are here without them.`;
  failure.hidden = false;
}

function start(figures) {
  const draw = (figure) => figure.draw().catch(failed);
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        watcher.unobserve(target);
        const figure = figures.find((each) => each.element === target);
        if (!figure.seen) draw(figure);
      }
    },
    { rootMargin: "800px" },
  );
  for (const figure of figures) watcher.observe(figure.element);

  const again = () => {
    for (const figure of figures) if (figure.seen) draw(figure);
  };
  dark.addEventListener("change", again);
  let [width, waiting] = [innerWidth, undefined];
  addEventListener("resize", () => {
    if (innerWidth === width || printing) return;
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(again, 100);
  });
  // Printing has a fixed width and light colours, and includes parts never scrolled into view.
  const opened = [];
  addEventListener("beforeprint", () => {
    printing = true;
    document.body.classList.add("printing");
    for (const details of document.querySelectorAll("details:not([open])")) {
      details.open = true;
      opened.push(details);
    }
    for (const table of document.querySelectorAll("table")) {
      const fits = table.parentElement.clientWidth / table.offsetWidth;
      if (fits < 1) table.style.zoom = fits;
    }
    for (const figure of figures) draw(figure);
  });
  addEventListener("afterprint", () => {
    printing = false;
    document.body.classList.remove("printing");
    for (const details of opened.splice(0)) details.open = false;
    for (const table of document.querySelectorAll("table")) table.style.zoom = "";
    again();
  });
  document.documentElement.dataset.figures = "ready";
}

const figures = Object.entries(specs).map(
  ([id, spec]) => new Figure(document.getElementById(id), spec),
);
if (figures.length)
  load()
    .then(() => start(figures))
    .catch(failed);

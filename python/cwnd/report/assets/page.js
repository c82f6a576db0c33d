"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const palettes = read("palettes");
  const specs = read("figures-data");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // A finger that moves over a figure scrolls the page; there are buttons to zoom.
  const finger = matchMedia("(pointer: coarse)").matches;
  // Where nothing hovers the buttons always show, and need room of their own.
  const hovers = matchMedia("(hover: hover)").matches;
  const failure = document.getElementById("failure");
  let printing = false;

  const palette = () => palettes[dark.matches && !printing ? "dark" : "light"];

  /** Puts the colours of the palette where the figure names them: "@2", or "@2/25" for 25 %. */
  function coloured(value, key, colours) {
    if (Array.isArray(value)) {
      return typeof value[0] === "object" ? value.map((each) => coloured(each, key, colours)) : value;
    }
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, coloured(v, k, colours)]));
    }
    if ((key === "color" || key === "fillcolor") && typeof value === "string" && value[0] === "@") {
      const [name, percent] = value.slice(1).split("/");
      const alpha = percent ? Math.round(percent * 2.55).toString(16).padStart(2, "0") : "";
      return colours[name] + alpha;
    }
    return value;
  }

  function layout(panel, colours, width, left) {
    const axis = (own) => ({
      automargin: true, color: colours.muted, gridcolor: colours.rule, linecolor: colours.muted,
      showline: true, zeroline: false, ticks: "outside", tickcolor: colours.muted, ...own,
      title: { ...own.title, standoff: 8, font: { size: 12, color: colours.ink } },
    });
    return {
      width, height: panel.height, autosize: false,
      margin: { l: left, r: 12, t: hovers || printing ? 10 : 32, b: 46 },
      paper_bgcolor: colours.paper, plot_bgcolor: colours.paper,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colours.ink },
      showlegend: false, hovermode: panel.hover, dragmode: finger ? false : "zoom",
      hoverlabel: { bgcolor: colours.paper, bordercolor: colours.muted, font: { color: colours.ink, size: 12 }, namelength: -1, align: "left" },
      xaxis: axis(panel.xaxis), yaxis: axis(panel.yaxis),
    };
  }

  const config = {
    displaylogo: false, responsive: false, showTips: false,
    displayModeBar: hovers ? "hover" : true,
    // Results are not sent to anyone.
    showSendToCloud: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };

  class Figure {
    constructor(element, spec) {
      this.element = element;
      this.spec = spec;
      this.choice = 0;
      // Of each view the lines that are hidden.
      this.hidden = {};
      this.plots = [];
      this.seen = false;
      this.moving = false;
      this.views = element.querySelector("select.views");
      this.labels = element.querySelector("select.labels");
      for (const select of [this.views, this.labels]) select?.addEventListener("change", () => this.choose());
      this.offer();
      for (const button of element.querySelectorAll(".legend button")) {
        button.addEventListener("click", () => this.toggle(button));
      }
      this.place();
    }

    /** Makes room for the panels, so that nothing moves when they are drawn. */
    place() {
      const { columns, panels } = this.spec.choices[this.choice];
      const room = this.element.querySelector(".panels");
      for (const plot of this.plots) if (this.seen) Plotly.purge(plot);
      room.style.setProperty("--columns", columns);
      this.plots = [];
      room.replaceChildren(...panels.map((panel) => {
        const box = document.createElement("div");
        box.className = "panel";
        if (panel.title) {
          const heading = document.createElement("h4");
          heading.textContent = panel.title;
          box.append(heading);
        }
        const plot = document.createElement("div");
        plot.className = "plot";
        plot.style.height = `${panel.height}px`;
        plot.tabIndex = 0;
        plot.setAttribute("role", "img");
        plot.setAttribute("aria-label", panel.alt);
        plot.addEventListener("keydown", (event) => this.key(event, plot));
        box.append(plot);
        this.plots.push(plot);
        return box;
      }));
    }

    draw() {
      this.seen = true;
      const colours = palette();
      const { panels } = this.spec.choices[this.choice];
      // All widths are read before anything is drawn: a layout of the page each time is slow.
      const widths = this.plots.map((plot) => plot.clientWidth);
      // The same for all panels, so that equal times stand above each other.
      const left = panels.some((panel) => panel.yaxis.title.text.includes("<br>")) ? 76 : 58;
      panels.forEach((panel, index) => {
        const plot = this.plots[index];
        const traces = coloured(panel.traces, "", colours).map((trace) => ({ ...trace, visible: !this.hides(trace.meta) }));
        const drawn = layout(panel, colours, widths[index], left);
        // A figure that is drawn again, for other colours or without a line, stays zoomed.
        for (const name of plot.dataset.ready ? ["xaxis", "yaxis"] : []) {
          const { range, autorange } = plot.layout[name];
          Object.assign(drawn[name], autorange ? { autorange } : { range: [...range], autorange: false });
        }
        Plotly.react(plot, traces, drawn, config);
        if (!plot.dataset.ready && this.spec.linked) {
          plot.on("plotly_relayout", (change) => this.follow(plot, change));
        }
        plot.dataset.ready = "yes";
      });
    }

    /** The view and what is chosen of it; where the view lacks that, its first. */
    choose() {
      const { choices } = this.spec;
      const view = this.views ? this.views.value : choices[0].view;
      const there = choices.filter((each) => each.view === view);
      const label = this.labels?.value;
      this.choice = choices.indexOf(there.find((each) => each.label === label) ?? there[0]);
      for (const legend of this.element.querySelectorAll(".legend")) legend.hidden = legend.dataset.view !== view;
      this.offer();
      this.place();
      this.draw();
    }

    /** What the view lacks cannot be chosen. */
    offer() {
      const { label, view } = this.spec.choices[this.choice];
      if (!this.labels) return;
      const there = new Set(this.spec.choices.filter((each) => each.view === view).map((each) => each.label));
      for (const option of this.labels.options) option.disabled = option.hidden = !there.has(option.value);
      this.labels.value = label;
    }

    hides(name) {
      return this.hidden[this.spec.choices[this.choice].view]?.has(name) ?? false;
    }

    toggle(button) {
      const name = button.dataset.line;
      const shown = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!shown));
      const hidden = this.hidden[this.spec.choices[this.choice].view] ??= new Set();
      if (shown) hidden.add(name); else hidden.delete(name);
      if (this.seen) this.draw();
    }

    /** Zooming along x moves the other panels along. */
    follow(plot, change) {
      if (this.moving) return;
      const update = {};
      if (change["xaxis.autorange"]) update["xaxis.autorange"] = true;
      else if ("xaxis.range[0]" in change || change["xaxis.range"]) update["xaxis.range"] = [...plot.layout.xaxis.range];
      else return;
      this.moving = true;
      Promise.all(this.plots.filter((each) => each !== plot).map((each) => Plotly.relayout(each, structuredClone(update))))
        .finally(() => { this.moving = false; });
    }

    key(event, plot) {
      if (!this.seen || event.target !== plot || event.ctrlKey || event.metaKey || event.altKey) return;
      const [low, high] = plot._fullLayout.xaxis.range;
      const to = (from, until) => Plotly.relayout(plot, { "xaxis.range": [low + (high - low) * from, low + (high - low) * until] });
      const moves = {
        ArrowLeft: () => to(-0.2, 0.8), ArrowRight: () => to(0.2, 1.2),
        "+": () => to(0.2, 0.8), "=": () => to(0.2, 0.8), "-": () => to(-0.33, 1.33),
        0: () => this.whole(), Home: () => this.whole(),
      };
      if (!(event.key in moves)) return;
      event.preventDefault();
      moves[event.key]();
    }

    whole() {
      const { panels } = this.spec.choices[this.choice];
      this.moving = true;
      Promise.all(panels.map((panel, index) => {
        const update = {};
        for (const name of ["xaxis", "yaxis"]) {
          if (panel[name].range) update[`${name}.range`] = [...panel[name].range]; else update[`${name}.autorange`] = true;
        }
        return Plotly.relayout(this.plots[index], update);
      })).finally(() => { this.moving = false; });
    }
  }

  async function load() {
    if (!("DecompressionStream" in window)) throw new Error("this browser is too old to unpack them");
    const packed = Uint8Array.from(atob(document.getElementById("library").textContent), (c) => c.charCodeAt(0));
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(unpacked).text();
    document.head.append(script);
  }

  function start(figures) {
    const watcher = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        watcher.unobserve(target);
        const figure = figures.find((each) => each.element === target);
        if (!figure.seen) figure.draw();
      }
    }, { rootMargin: "800px" });
    for (const figure of figures) watcher.observe(figure.element);

    const again = () => { for (const figure of figures) if (figure.seen) figure.draw(); };
    dark.addEventListener("change", again);
    let width = innerWidth, waiting;
    addEventListener("resize", () => {
      if (innerWidth === width || printing) return;
      width = innerWidth;
      clearTimeout(waiting);
      waiting = setTimeout(again, 100);
    });
    // Paper has a width of its own, is white, and shows what was never scrolled to.
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
      for (const figure of figures) figure.draw();
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

  const figures = Object.entries(specs).map(([id, spec]) => new Figure(document.getElementById(id), spec));
  if (figures.length) {
    load().then(() => start(figures)).catch((error) => {
      failure.textContent = `The figures could not be drawn: ${error.message}. All tables are here without them.`;
      failure.hidden = false;
    });
  }
})();

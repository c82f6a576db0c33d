"use strict";

/** The page: set-ups A and B, each with a worker, their plots, the table and the address. */

const byId = (id) => document.getElementById(id);
const read = (id) => JSON.parse(byId(id).textContent);
const given = read("given");
const examples = read("examples");
const about = byId("about").textContent;
const setups = {};
let active = "A";
let schema, module, controls;

/** What all plots share. */
const shared = {
  end: 1,
  tops: { window: 1, queue: 1, goodput: 1, delay: 1 },
  zoom: null,
  zoomTo(ends) {
    shared.zoom = ends;
    byId("zoom").hidden = !ends;
    for (const { plots } of Object.values(setups)) plots.draw();
  },
};

function fail(error) {
  byId("failure").hidden = false;
  const why = error.message ?? error;
  byId("failure").textContent = `The playground does not work in this browser: ${why}`;
}

/** Says something to people who look, and to those who listen. */
function say(text, button) {
  byId("told").textContent = text;
  if (!button) return;
  const before = button.dataset.text ?? button.textContent;
  button.dataset.text = before;
  button.textContent = text;
  clearTimeout(button.timer);
  button.timer = setTimeout(() => (button.textContent = before), 1500);
}

async function unpacked(text, format) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format));
  return new Response(stream).arrayBuffer();
}

async function packed(text, format) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream(format));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/**
 * A set-up: a scenario, its worker, its picture. `seq` is the number of its newest message, `drawn`
 * that of the message that the picture shows, `seen` that of the newest one with a whole answer.
 */
class Setup {
  constructor(name, text, index) {
    Object.assign(this, { name, text, index, link: null, seq: 0, drawn: 0, seen: 0 });
    const title = element("h2", { textContent: `Set-up ${name}` });
    this.status = element("p", { className: "status" });
    this.links = element("select", { hidden: true });
    this.links.setAttribute("aria-label", `Link of set-up ${name} whose queue is drawn`);
    this.links.onchange = () => this.choose(this.links.value);
    this.errors = element("pre", { className: "errors", hidden: true });
    this.errors.setAttribute("role", "alert");
    this.warnings = element("pre", { className: "hint" });
    const place = element("div", { className: "plots" });
    const head = element("div", { className: "head" }, title, this.links, this.status);
    this.article = element("article", {}, head, this.errors, this.warnings, place);
    this.article.dataset.setup = name;
    byId("setups").append(this.article);
    this.plots = new Plots(place, name, shared);
    this.worker = new Worker(workerUrl());
    this.worker.onmessage = ({ data }) => this.receive(data);
    this.worker.onerror = (event) => fail(event);
    this.send({ module, text, index });
  }

  send(message) {
    this.seq += 1;
    this.worker.postMessage({ ...message, seq: this.seq });
  }

  /** Edits the scenario, or selects a run of its sweep. */
  change(changes, index) {
    if (index !== undefined) this.index = index;
    this.send({ ...(changes && { changes }), ...(index !== undefined && { index }) });
  }

  replace(text, index = 0) {
    Object.assign(this, { text, index });
    this.send({ text, index });
  }

  receive(data) {
    if (data.schema) return ready(data.schema);
    if ("text" in data) {
      this.text = data.text;
      this.facts = data.facts ?? this.facts;
      this.index = this.facts?.index ?? this.index;
      this.errors.hidden = !data.errors;
      this.errors.textContent = data.errors?.text ?? "";
      this.warnings.textContent = data.facts?.warnings.text ?? "";
      this.article.classList.toggle("wrong", Boolean(data.errors));
      if (data.errors) this.seen = data.seq;
      if (this.name === active) showSettings();
      return remember();
    }
    const { isPartial, took } = data;
    Object.assign(this, { results: readTables(data.tables), isPartial, took, drawn: data.seq });
    this.draw();
    if (!isPartial) this.seen = data.seq;
  }

  choose(link) {
    this.link = link;
    this.draw();
  }

  draw() {
    const { results, isPartial, took } = this;
    const names = [...new Set((results.tables.links ?? results.tables.link_series).link)];
    if (!names.includes(this.link)) this.link = names[0];
    // A dumbbell's second link is its way back.
    this.links.hidden = names.length < 3;
    if (this.links.options.length !== names.length)
      this.links.replaceChildren(...names.map((each) => new Option(`queue of ${each}`, each)));
    this.links.value = this.link;
    this.curves = curvesOf(results.tables, this.link);
    const { omitted } = this.curves;
    this.status.textContent = isPartial
      ? `the first ${results.time_s.toFixed(1)} s of ${results.end_s} s; simulating the rest …`
      : `${results.time_s.toFixed(1)} s simulated in ${Math.max(1, Math.round(took))} ms` +
        (omitted ? `; ${omitted} more flows are not drawn` : "") +
        (this.curves.times.length ? "" : "; without `sample` there are no curves");
    this.article.classList.toggle("partial", isPartial);
    fitAxes();
    this.plots.show(this.curves);
    for (const other of Object.values(setups)) if (other !== this) other.plots.draw();
    showSummary();
  }

  close() {
    this.worker.terminate();
    this.article.remove();
  }
}

/** Ends of the axes that fit all set-ups. */
function fitAxes() {
  const shown = Object.values(setups).filter((each) => each.curves);
  const most = (values) => values.reduce((top, value) => (value > top ? value : top), 0);
  shared.end = most(shown.map(({ results }) => results.end_s));
  for (const { name } of KINDS) {
    const tops = shown.flatMap(({ curves }) => curves[name].map(({ values }) => most(values)));
    shared.tops[name] = rounded(most(tops) * 1.06) || 1;
  }
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
const percent = (share) => `${compact.format(100 * share)} %`;
const missing = (value, format) => (Number.isFinite(value) ? format(value) : "–");

/** Rows of the table for a set-up: names and texts. */
function summaryOf({ results, link, isPartial }) {
  const { flows, unrecorded, links, reasons } = results.tables;
  if (isPartial) return [];
  /** Sum of a column over all flows, or over those of a group; some may have no row. */
  const total = (column, group) =>
    sum(
      [flows, unrecorded].flatMap((table) =>
        [...table[column]].filter((_, row) => !group || table.group[row] === group),
      ),
    );
  const row = links.link.indexOf(link);
  const count = (verdict) =>
    sum(
      rowsOf(reasons, "link", link)
        .filter((row) => reasons.verdict[row] === verdict)
        .map((row) => reasons.packets[row]),
    );
  const groups = [...new Set([...flows.group, ...unrecorded.group])].map((group) => {
    const bits = total("delivered_bytes", group) * 8;
    const rate = (bits * 1e-6) / (results.end_s - results.warmup_s);
    return [`Goodput of ${group}`, `${compact.format(rate)} Mbit/s`];
  });
  const sent = total("segments_sent");
  const ms = (column) => missing(links[column][row], (us) => `${compact.format(us / 1e3)} ms`);
  return [
    ...groups,
    ["Utilisation", missing(links.utilisation[row], percent)],
    ["Queueing delay, median", ms("qdelay_p50_us")],
    ["Queueing delay, 95th percentile", ms("qdelay_p95_us")],
    ["Dropped packets", String(count("dropped"))],
    ["Marked packets", String(count("marked"))],
    ["Retransmitted segments", percent(sent ? total("retrans") / sent : 0)],
    ["Timeouts", String(total("rto_count"))],
    ["Digest", results.digest],
  ];
}

function showSummary() {
  const shown = Object.values(setups).filter((each) => each.results);
  const columns = shown.map((each) => new Map(summaryOf(each)));
  const names = [...new Set(columns.flatMap((each) => [...each.keys()]))];
  // Groups first, as some may be in one set-up only.
  names.sort((one, other) => other.startsWith("Goodput") - one.startsWith("Goodput"));
  const cells = (tag, texts) => texts.map((textContent) => element(tag, { textContent }));
  const heads = shown.length > 1 ? shown.map(({ name }) => `Set-up ${name}`) : ["Result"];
  const rows = names.map((name) => {
    const texts = columns.map((each) => each.get(name) ?? "…");
    const head = element("th", { textContent: name, scope: "row" });
    return element("tr", {}, head, ...cells("td", texts));
  });
  byId("summary").replaceChildren(
    element("thead", {}, element("tr", {}, ...cells("th", ["", ...heads]))),
    element("tbody", {}, ...rows),
  );
}

function showSettings() {
  const setup = setups[active];
  const text = byId("text");
  if (document.activeElement !== text && text.value !== setup.text) text.value = setup.text;
  byId("settings").setAttribute("aria-labelledby", `tab-${active}`);
  byId("about").textContent = setup.facts?.description || about;
  if (setup.facts && controls) controls.show(setup.facts);
}

function activate(name) {
  active = name;
  document.activeElement === byId("text") && byId("text").blur();
  for (const each of "AB") {
    byId(`tab-${each}`).setAttribute("aria-selected", each === name);
    byId(`tab-${each}`).tabIndex = each === name ? 0 : -1;
  }
  showSettings();
}

function compare(text, index) {
  if (setups.B) {
    setups.B.close();
    delete setups.B;
  } else setups.B = new Setup("B", text ?? setups.A.text, index ?? setups.A.index);
  const isOn = Boolean(setups.B);
  byId("compare").setAttribute("aria-pressed", isOn);
  byId("compare").textContent = isOn ? "Show one set-up" : "Compare with a second set-up";
  document.querySelector(".tabs").hidden = !isOn;
  document.body.classList.toggle("two", isOn);
  activate(isOn ? "B" : "A");
  if (!isOn && setups.A.results) setups.A.draw();
  remember();
}

let waiting;
/** Puts the state into the address, and into the notebook around the page. */
function remember() {
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    const state = Object.values(setups).map(({ text, index }) => ({ text, index }));
    const code = await packed(JSON.stringify(state), "deflate-raw");
    const address = code.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    if (parent !== window) parent.postMessage({ cwnd: state }, "*");
    else history.replaceState(null, "", `#${address}`);
  }, 250);
}

/** State of the address; else what the page was written with. */
async function recalled() {
  const code = location.hash.slice(1).replaceAll("-", "+").replaceAll("_", "/");
  if (code) {
    try {
      const found = JSON.parse(new TextDecoder().decode(await unpacked(code, "deflate-raw")));
      if (Array.isArray(found) && typeof found[0]?.text === "string") return found;
    } catch {
      // Not deflated JSON: no address of a playground either.
    }
    say("The address is not one of a playground.");
  }
  return given.length ? given : [{ text: examples[0].text, index: 0 }];
}

let url;
function workerUrl() {
  const source = byId("worker").textContent;
  return (url ??= URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
}

function ready(found) {
  if (schema) return;
  schema = found;
  const changed = (...change) => setups[active].change(...change);
  controls = new Controls(byId("settings"), schema, changed);
  if (setups[active].facts) showSettings();
}

function listen() {
  byId("example").append(
    new Option("choose …", ""),
    ...examples.map(({ name, about }) => Object.assign(new Option(name), { title: about })),
  );
  byId("example").onchange = ({ target }) => {
    const example = examples.find(({ name }) => name === target.value);
    if (example) setups[active].replace(example.text);
    target.value = "";
  };
  byId("compare").onclick = () => compare();
  byId("zoom").onclick = () => shared.zoomTo(null);
  for (const name of "AB") {
    byId(`tab-${name}`).onclick = () => activate(name);
    byId(`tab-${name}`).onkeydown = ({ key }) => {
      if (key !== "ArrowLeft" && key !== "ArrowRight") return;
      activate(name === "A" ? "B" : "A");
      byId(`tab-${active}`).focus();
    };
  }
  let typing, typed;
  const flush = () => {
    clearTimeout(typing);
    typed?.();
    typed = null;
  };
  byId("text").oninput = ({ target }) => {
    const setup = setups[active];
    typed = () => setup.replace(target.value, setup.index);
    clearTimeout(typing);
    typing = setTimeout(flush, 200);
  };
  byId("text").onblur = flush;
  byId("link").onclick = async ({ target }) => {
    const { href } = location;
    await navigator.clipboard.writeText(href).catch(() => prompt("Address:", href));
    say("Copied", target);
  };
  byId("copy").onclick = async ({ target }) => {
    const { text } = setups[active];
    await navigator.clipboard.writeText(text).catch(() => byId("text").select());
    say("Copied", target);
  };
  byId("save").onclick = () => {
    const file = URL.createObjectURL(new Blob([setups[active].text], { type: "application/toml" }));
    const name = setups[active].facts?.name ?? "scenario";
    element("a", { href: file, download: `${name}.toml` }).click();
    setTimeout(() => URL.revokeObjectURL(file), 1000);
  };
  byId("open").onchange = async ({ target }) => {
    if (target.files[0]) setups[active].replace(await target.files[0].text());
    target.value = "";
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const { plots } of Object.values(setups)) {
      plots.rebuild();
      plots.draw();
    }
  });
  if (parent !== window) byId("link").hidden = true;
  // Another address in the same tab; the page's own changes of it are silent.
  addEventListener("hashchange", () => location.reload());
}

async function start() {
  const [[first, second]] = await Promise.all([
    recalled(),
    unpacked(byId("core").textContent, "gzip").then(async (bytes) => {
      module = await WebAssembly.compile(bytes);
    }),
  ]);
  listen();
  setups.A = new Setup("A", first.text, first.index ?? 0);
  activate("A");
  if (second) compare(second.text, second.index ?? 0);
}

start().catch(fail);

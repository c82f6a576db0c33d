"use strict";

/** Controls of a scenario: labels, limits and texts are those of its JSON Schema. */

/** Lowest and highest value of a slider by unit. */
const RANGES = {
  "kbit/s": [10, 10000],
  "Mbit/s": [0.2, 200],
  "Gbit/s": [0.1, 10],
  ns: [1000, 1e9],
  us: [1, 1e5],
  ms: [1, 1000],
  s: [0.1, 120],
  BDP: [0.05, 10],
  packets: [1, 5000],
  B: [40, 9000],
  kB: [1, 1000],
  MB: [0.1, 100],
};
/** Positions of a slider on a logarithmic scale; each is another value. */
const STEPS = 200;
const QUANTITY = /^\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z/]+)\s*$/;
/** No time, in any unit, and its usual unit by key. */
const ZERO = /^0 [nu]?s$/;
const ZERO_AS = { start: "0 s", warmup: "0 s" };
/** Keys of a group of flows and of a link that have controls of their own, in order. */
const FLOW_KEYS = ["controller", "stack", "rtt", "count", "start"];
const LINK_KEYS = ["rate", "queue", "delay", "loss"];
const RUN_KEYS = ["duration", "warmup", "sample", "seed"];
const TITLES = { rtt: "RTT", "queue.limit": "buffer", "endpoint.ecn": "ECN" };

const at = (values, path) => path.reduce((value, key) => value?.[key], values);
const plain = (text) => (text ?? "").replaceAll(/`|\[([^\]]*)\]\([^)]*\)/g, "$1");
/** Two digits, or three that begin with 1. */
const rounded = (value) => Number(value.toPrecision(value.toExponential()[0] === "1" ? 3 : 2));

function element(tag, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.append(...children);
  return made;
}

class Controls {
  /** `change(changes)` edits the scenario; `schema` is the JSON Schema. */
  constructor(place, schema, change) {
    Object.assign(this, { place, schema, change, fields: new Map(), shape: "" });
  }

  definition(name) {
    return this.schema.$defs[name];
  }

  /** Follows references and alternatives: words, limits of numbers, and `true` for quantities. */
  describe(node, found = { words: [], text: "" }) {
    found.text ||= plain(node.description);
    if (node.$ref) this.describe(this.definition(node.$ref.split("/").pop()), found);
    for (const each of node.anyOf ?? node.oneOf ?? []) this.describe(each, found);
    if (node.enum) found.words.push(...node.enum.map(String));
    if (typeof node.const === "string") found.words.push(node.const);
    if (node.type === "boolean") found.isBoolean = true;
    if (node.type === "number" || node.type === "integer") found.number = node;
    if (node.pattern) found.isQuantity = true;
    return found;
  }

  /** Keys of a kind of part. */
  keysOf(part, kind) {
    const kinds = this.definition(part).anyOf ?? [];
    return kinds.find((each) => each.properties?.kind?.const === kind)?.properties ?? {};
  }

  /** Shows the values of a scenario: builds the fields if they are others, else fills them in. */
  show(facts) {
    this.facts = facts;
    const sections = this.sections(facts);
    const shape = JSON.stringify(sections);
    if (shape !== this.shape) this.build(sections);
    this.shape = shape;
    for (const field of this.fields.values()) field.fill();
  }

  sections({ resolved, groups: names, links: linkNames, written, axes, repeat }) {
    const link = (path, name) => ({
      title: name,
      fields: LINK_KEYS.flatMap((key) => this.part([...path, key], key)),
    });
    const links = resolved.dumbbell
      ? [link(["dumbbell"], "Bottleneck")]
      : linkNames
          .filter((name) => name in written.link)
          .map((name) => link(["link", name], `Link ${name}`));
    const groups = names.map((name) => ({
      title: `Flows ${name}`,
      group: name,
      fields: FLOW_KEYS.flatMap((key) => this.part(["flow", name, key], key)).concat([
        { path: ["flow", name, "endpoint", "ecn"], title: "endpoint.ecn" },
      ]),
    }));
    const ofRun = RUN_KEYS.map((key) => ({ path: ["run", key], title: key }));
    const run = { title: "Run", fields: ofRun };
    const sweep = { title: "Sweep", axes, repeat, fields: [] };
    return [...(axes.length || repeat > 1 ? [sweep] : []), ...links, ...groups, run];
  }

  /** Fields of a key; those of a part with kinds are its kind and the keys of the kind. */
  part(path, key) {
    if (key !== "queue" && key !== "controller") return [{ path, title: key }];
    const kind = at(this.facts.resolved, [...path, "kind"]);
    const keys = Object.keys(this.keysOf(key, kind)).filter((each) => each !== "kind");
    keys.sort((one, other) => (other === "limit") - (one === "limit"));
    const fields = keys.map((each) => ({ path: [...path, each], title: `${key}.${each}`, kind }));
    const isMain = (field) => field.title === "queue.limit";
    return [
      { path: [...path, "kind"], title: key, isKind: true },
      ...fields.filter(isMain),
      { more: fields.filter((field) => !isMain(field)), title: `parameters of ${kind}` },
    ];
  }

  /** The schema's node of a path. */
  node([section, ...path], kind) {
    const [first, ...rest] = section === "flow" || section === "link" ? path.slice(1) : path;
    const dumbbell = this.facts.resolved.dumbbell;
    const name = section === "flow" ? `flow-${dumbbell ? "dumbbell" : "graph"}` : section;
    const key = this.definition(name).properties[first];
    if (rest.length === 0) return key;
    if (first === "endpoint") {
      const table = this.definition("endpoint").anyOf.find((each) => each.properties);
      return table.properties[rest[0]];
    }
    if (rest[0] !== "kind") return this.keysOf(first, kind)[rest[0]];
    const kinds = this.definition(first).anyOf;
    return { ...kinds.find((each) => each.enum), description: key.description };
  }

  build(sections) {
    const open = new Set(
      [...this.place.querySelectorAll("details[open]")].map((each) => each.dataset.name),
    );
    const focused = document.activeElement?.id;
    this.fields.clear();
    const built = sections.map((section) => {
      const box = element("fieldset", {}, element("legend", { textContent: section.title }));
      if (section.axes) this.addAxes(box, section);
      for (const field of section.fields) this.addField(box, field, section, open);
      if (section.group && sections.filter((each) => each.group).length > 1) {
        const remove = element("button", { type: "button", textContent: "Remove" });
        remove.setAttribute("aria-label", `Remove ${section.title}`);
        remove.onclick = () => this.change([[["flow", section.group], null]]);
        box.append(remove);
      }
      return box;
    });
    const add = element("button", { type: "button", textContent: "Add flows" });
    add.onclick = () => this.addGroup();
    this.place.replaceChildren(...built, add);
    document.getElementById(focused)?.focus();
  }

  addGroup() {
    const flows = this.facts.written.flow;
    const name = [..."abcdefghijklmnopqrstuvwxyz"].find((each) => !(each in flows));
    if (name) this.change([[["flow", name], flows[this.facts.groups.at(-1)]]]);
  }

  addAxes(box, { axes, repeat }) {
    const all = repeat > 1 ? [...axes, { name: "repeat", labels: numbers(repeat) }] : axes;
    const selects = all.map(({ name, labels }) => {
      const options = labels.map((label, n) => new Option(label, n));
      return [name, element("select", {}, ...options), labels.length];
    });
    const read = () =>
      selects.reduce((index, [, select, count]) => index * count + Number(select.value), 0);
    for (const [name, select] of selects) {
      select.onchange = () => this.change(null, read());
      this.addRow(box, `axis.${name}`, name, select);
    }
    const fill = () => {
      let rest = this.facts.index;
      for (const [, select, count] of [...selects].reverse()) {
        select.value = rest % count;
        rest = Math.floor(rest / count);
      }
    };
    this.fields.set("axes", { fill });
  }

  addRow(box, id, title, ...inputs) {
    const label = element("label", { htmlFor: id, textContent: title });
    inputs[0].id = id;
    box.append(element("div", { className: "field" }, label, ...inputs));
    return label;
  }

  addField(box, field, section, open) {
    if (field.more) {
      if (!field.more.length) return;
      const name = `${section.title} ${field.title}`;
      const more = element("details", {}, element("summary", { textContent: field.title }));
      more.dataset.name = name;
      more.open = open.has(name);
      field.more.forEach((each) => this.addField(more, each, section, open));
      box.append(more);
      return;
    }
    const node = this.node(field.path, field.kind);
    if (!node) return;
    const about = this.describe(node);
    const id = field.path.join(".");
    const title = TITLES[field.title] ?? field.title.split(".").pop().replaceAll("_", " ");
    const made = this.input(field, about, node);
    const label = this.addRow(box, id, title, ...made.inputs);
    made.inputs.slice(1).forEach((input) => input.setAttribute("aria-label", `${title}, slider`));
    const fill = () => {
      if (made.inputs.includes(document.activeElement) && made.isTyping()) return;
      made.fill(this.valueOf(field.path, node));
      const axis = this.axisOf(field.path);
      label.parentElement.classList.toggle("swept", Boolean(axis));
      const text = axis ? `set by the sweep's axis ${axis}` : about.text;
      [label, ...made.inputs].forEach((each) => (each.title = text));
      made.inputs.forEach((input) => (input.disabled = input.disabled || Boolean(axis)));
    };
    this.fields.set(id, { fill });
  }

  /** Effective value of a key, as it was written if it was, and no axis replaces that. */
  valueOf(path, node) {
    const written = this.axisOf(path) ? undefined : at(this.facts.written, path);
    const value = typeof written === "object" ? undefined : written;
    const resolved = at(this.facts.resolved, path);
    const constant = resolved?.initial && !resolved.steps?.length;
    const found = value ?? (constant ? resolved.initial : resolved);
    return ZERO.test(found) ? ZERO_AS[path.at(-1)] ?? "0 ms" : (found ?? node.default);
  }

  /** Axis of the sweep that sets this key, or a table with it. */
  axisOf(path) {
    const key = path.filter((each) => each !== "kind");
    const axes = Object.entries(this.facts.written.sweep?.axis ?? {});
    const isMet = (part, n) => n >= key.length || part === "*" || part === key[n];
    const sets = ([, axis]) => [axis.path].flat().some((set) => partsOf(set).every(isMet));
    return axes.find(sets)?.[0];
  }

  set({ path, kind, isKind }, value) {
    // A part of another kind has none of the keys of the old one.
    if (isKind) this.change([[path.slice(0, -1), value]]);
    else this.change([...(kind ? [[[...path.slice(0, -1), "kind"], kind]] : []), [path, value]]);
  }

  input(field, about, node) {
    const { words, number } = about;
    if (about.isBoolean) {
      const box = element("input", { type: "checkbox" });
      box.onchange = () => this.set(field, box.checked);
      const fill = (value) => Object.assign(box, { checked: value, disabled: false });
      return { inputs: [box], isTyping: () => false, fill };
    }
    if (words.length > 1 && !number && !about.isQuantity) {
      const select = element("select", {}, ...words.map((word) => new Option(word)));
      select.onchange = () => this.set(field, select.value);
      const fill = (value) => {
        select.disabled = typeof value !== "string";
        if (!select.disabled && !words.includes(value)) select.append(new Option(value));
        select.value = value;
      };
      return { inputs: [select], isTyping: () => false, fill };
    }
    return this.slider(field, number, node);
  }

  /** A text with a slider, which is hidden while the text is no number of a known unit. */
  slider(field, number, node) {
    const text = element("input", { type: "text", spellcheck: false, autocomplete: "off" });
    const slider = element("input", { type: "range", min: 0, step: 1 });
    let scale = null;
    let typed = null;
    const given = () => {
      const value = text.value.trim();
      return number && value !== "" && !Number.isNaN(Number(value)) ? Number(value) : value;
    };
    text.oninput = () => (typed = text.value);
    text.onblur = () => (typed = null);
    text.onchange = () => {
      typed = null;
      this.set(field, text.value.trim() === "" ? null : given());
    };
    slider.oninput = () => {
      const value = scale.value(Number(slider.value));
      text.value = scale.unit ? `${value} ${scale.unit}` : value;
      this.set(field, given());
    };
    const fill = (value) => {
      text.disabled = typeof value === "object";
      text.value = text.disabled ? "…" : (value ?? "");
      const keep = slider === document.activeElement && scale;
      scale = keep ? scale : scaleOf(value, number, node, field.path.at(-1));
      slider.disabled = slider.hidden = text.disabled || !scale;
      if (slider.disabled || keep) return;
      slider.max = scale.steps;
      slider.value = scale.position(parseFloat(value));
    };
    return { inputs: [text, slider], isTyping: () => typed !== null, fill };
  }
}

/** Parts of a dotted path of keys; those with a dot are quoted. */
const partsOf = (path) => path.match(/"[^"]*"|[^."]+/g).map((part) => part.replaceAll('"', ""));

const numbers = (count) => Array.from({ length: count }, (_, n) => String(n + 1));

/** Scale of a slider for a value: linear for shares and starts, else logarithmic; or none. */
function scaleOf(value, number, node, key) {
  if (number) {
    if (typeof value !== "number") return null;
    const least = number.minimum ?? number.exclusiveMinimum ?? 0;
    const most = number.maximum ?? number.exclusiveMaximum ?? Infinity;
    if (key === "loss") return linear(0, 0.1, "", 1e-3);
    if (most <= 1) return linear(Math.max(least, 0.01), most < 1 ? most : 0.99, "", 0.01);
    if (key === "seed") return linear(0, 100, "", 1);
    const isWhole = number.type === "integer";
    const from = Math.max(least, isWhole ? 1 : value / 10 || 0.01);
    const to = Math.min(most, key === "count" ? 100 : Math.max(from, value, 0.1) * 10);
    return to > from ? logarithmic(from, to, "", isWhole) : null;
  }
  const [, amount, unit] = QUANTITY.exec(String(value).replace("µ", "u")) ?? [];
  if (key === "start" || key === "warmup") {
    return unit ? linear(0, 30, "s", 0.1, scaleIn(unit)) : null;
  }
  const range = RANGES[unit];
  if (!range) return null;
  const shown = Number(amount);
  return logarithmic(Math.min(range[0], shown || range[0]), Math.max(range[1], shown), unit);
}

/** Seconds of a unit of time. */
const scaleIn = (unit) => ({ ns: 1e-9, us: 1e-6, ms: 1e-3 })[unit] ?? 1;

function linear(from, to, unit, step, factor = 1) {
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  return {
    unit,
    steps: Math.round((to - from) / step),
    value: (position) => Number((from + position * step).toFixed(digits)),
    position: (value) => (value * factor - from) / step,
  };
}

function logarithmic(from, to, unit, isWhole = false) {
  return {
    unit,
    steps: STEPS,
    value: (position) => {
      const value = rounded(from * (to / from) ** (position / STEPS));
      return isWhole ? Math.max(Math.round(value), from) : value;
    },
    position: (value) =>
      value > from ? (STEPS * Math.log(value / from)) / Math.log(to / from) : 0,
  };
}

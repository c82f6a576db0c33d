const at = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const palettes = JSON.parse(at("palettes").textContent);
const colours = () => palettes[dark.matches ? "dark" : "light"];

const [DATA, ACK, QUENCH] = [0, 1, 2];
const [AGAIN, ECHO] = [4, 8];
const [MARK, QUENCHED] = ["3", "5"];
/** Display times in seconds: of a falling packet, and of the ring around an arriving signal. */
const [FALL_S, RING_S] = [0.9, 0.6];

const seconds = (ns, digits) => (ns / 1e9).toFixed(digits);
const milliseconds = (ns) => `${(ns / 1e6).toPrecision(3)} ms`;
const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Index of the first element that is at least `value`, in ascending numbers. */
function lowerBound(sorted, value) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Packets of a scene, with absolute times; a time that never came is infinite. */
function unpacked(columns) {
  const count = columns.sent.length;
  const sent = new Float64Array(count);
  let now = 0;
  columns.sent.forEach((step, i) => (sent[i] = now += step));
  const times = { sent };
  for (const name of ["arrived", "start", "left", "ended", "ce"]) {
    times[name] = Float64Array.from(columns[name], (v, i) => (v < 0 ? Infinity : sent[i] + v));
  }
  const { flow, flags, marked, lost } = columns;
  return { count, ...times, flow, flags, marked, lost, kind: flags.map((f) => f & 3) };
}

function median(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  return sorted.length ? sorted[sorted.length >> 1] : 0;
}

class Scene {
  constructor(figure, data) {
    Object.assign(this, data);
    this.packets = unpacked(data.packets);
    this.figure = figure;
    this.picture = figure.querySelector(".picture");
    this.strip = figure.querySelector(".strip");
    this.measure();
    this.signals = this.findSignals();
    this.steps = this.queueSteps();
    this.ring = new Set();
    this.highest = { queue: 1, packets: 1 };
    for (const [, waiting] of this.steps) this.raise({ queue: waiting, packets: waiting });
    for (const { packets } of this.windows) {
      for (const value of packets) this.raise({ queue: 1, packets: value });
    }
  }

  /** Raises the upper ends of the axes of the queue and of the strip. */
  raise({ queue, packets }) {
    this.highest.queue = Math.max(this.highest.queue, queue);
    this.highest.packets = Math.max(this.highest.packets, packets);
  }

  /** Usual durations, for the proportions of the picture and for packets without an end. */
  measure() {
    const p = this.packets;
    const pick = (of) => {
      const found = [];
      const each = Math.max(1, Math.floor(p.count / 4000));
      for (let i = 0; i < p.count; i += each) found.push(of(i));
      return median(found);
    };
    const isData = (i) => p.kind[i] === DATA && !p.lost[i];
    this.toRouter = pick((i) => (isData(i) ? p.arrived[i] - p.sent[i] : NaN));
    this.toReceiver = pick((i) => (isData(i) ? p.ended[i] - p.left[i] : NaN));
    const isBack = (i) => p.kind[i] === ACK && p.arrived[i] === Infinity;
    this.back = pick((i) => (isBack(i) ? p.ended[i] - p.sent[i] : NaN));
    this.rtt = this.toRouter + this.toReceiver + this.back;
    let longest = 0;
    for (let i = 0; i < p.count; i++) {
      if (p.ended[i] < Infinity) longest = Math.max(longest, p.ended[i] - p.sent[i]);
    }
    this.longest = Math.max(longest, this.rtt * 2);
  }

  /** End of a packet's stay in the queue: the start of its transmission, or its drop there. */
  leavesQueue(i) {
    const p = this.packets;
    return p.start[i] < Infinity ? p.start[i] : p.lost[i] ? p.ended[i] : Infinity;
  }

  isInQueue(i, t) {
    const p = this.packets;
    return p.kind[i] !== QUENCH && p.arrived[i] <= t && t < this.leavesQueue(i);
  }

  wasDroppedHere(i) {
    const p = this.packets;
    const stayed = p.arrived[i] < Infinity && p.left[i] === Infinity;
    return p.lost[i] > 0 && stayed && p.kind[i] !== QUENCH;
  }

  /** Marks and losses in order of time, each with its quench and the first echo after it. */
  findSignals() {
    const p = this.packets;
    const found = [];
    const [echoes, quenches] = [new Map(), new Map()];
    const add = (map, i) => {
      if (!map.has(p.flow[i])) map.set(p.flow[i], { packets: [], times: [] });
      map.get(p.flow[i]).packets.push(i);
      map.get(p.flow[i]).times.push(p.sent[i]);
    };
    for (let i = 0; i < p.count; i++) {
      if (p.kind[i] === ACK && p.flags[i] & ECHO) add(echoes, i);
      if (p.kind[i] === QUENCH) add(quenches, i);
    }
    const first = (map, flow, from, until) => {
      const { packets, times } = map.get(flow) ?? { packets: [], times: [] };
      const k = lowerBound(times, from);
      return k < times.length && times[k] <= until ? packets[k] : null;
    };
    for (let i = 0; i < p.count; i++) {
      if (p.kind[i] === QUENCH || p.arrived[i] === Infinity) continue;
      if (!p.marked[i] && !p.lost[i]) continue;
      const when = p.marked[i] ? p.ce[i] : p.ended[i];
      const quench = first(quenches, p.flow[i], when, when);
      const came = p.marked[i] ? p.ended[i] : Infinity;
      const echo = first(echoes, p.flow[i], came, came + this.rtt);
      found.push({ scene: this, when, packet: i, quench, echo });
    }
    return found.sort((a, b) => a.when - b.when);
  }

  /** Pairs of a time and the number of packets that wait from then on. */
  queueSteps() {
    const p = this.packets;
    const changes = [];
    for (let i = 0; i < p.count; i++) {
      if (p.kind[i] === QUENCH || p.arrived[i] === Infinity) continue;
      if (this.leavesQueue(i) === p.arrived[i]) continue;
      changes.push([p.arrived[i], 1]);
      if (this.leavesQueue(i) < Infinity) changes.push([this.leavesQueue(i), -1]);
    }
    let waiting = 0;
    return changes.sort((a, b) => a[0] - b[0]).map(([when, change]) => [when, (waiting += change)]);
  }

  describe({ when, packet, quench, echo }) {
    const p = this.packets;
    const reason = this.reasons[p.marked[packet] || p.lost[packet]];
    const lost = this.wasDroppedHere(packet) ? "dropped" : "lost after the queue";
    const what = p.marked[packet] ? "marked" : lost;
    const { label } = this.flows[p.flow[packet]];
    const waiting = plural(this.waitingAt(when).length, "packet");
    let text = `${seconds(when, 4)} s, ${this.title}: a packet of ${label} is ${what}`;
    text += ` (${reason}); ${waiting} in the queue.`;
    if (quench !== null && p.ended[quench] < Infinity) {
      text += ` Its quench reaches the sender ${milliseconds(p.ended[quench] - when)} later.`;
    }
    if (echo !== null && p.ended[echo] < Infinity) {
      text += ` Its echo reaches the sender ${milliseconds(p.ended[echo] - when)} later.`;
    }
    return text;
  }

  /** Packets that may be under way at a time: those sent within the longest journey before it. */
  *candidates(t, margin = 0) {
    const { sent } = this.packets;
    const end = lowerBound(sent, t + 1);
    for (let i = lowerBound(sent, t - this.longest - margin); i < end; i++) yield i;
  }

  /** Packets that wait at a time, in the order in which they leave. */
  waitingAt(t) {
    const found = [];
    for (const i of this.candidates(t)) if (this.isInQueue(i, t)) found.push(i);
    const p = this.packets;
    const leaves = (i) => this.leavesQueue(i);
    return found.sort((a, b) => leaves(a) - leaves(b) || p.arrived[a] - p.arrived[b]);
  }

  windowAt(flow, t) {
    const series = this.windows[flow];
    if (!series?.time_s.length) return null;
    return series.packets[Math.max(0, lowerBound(series.time_s, t / 1e9 + 1e-9) - 1)];
  }

  colourOf(i, palette) {
    const p = this.packets;
    if (p.kind[i] === QUENCH) return palette[QUENCHED];
    return palette[this.flows[p.flow[i]].colour];
  }

  isSignal(i, t) {
    const p = this.packets;
    return p.ce[i] <= t || (p.kind[i] === ACK && (p.flags[i] & ECHO) > 0);
  }

  /** Positions of the parts of the picture, in CSS pixels. */
  layout(width, height) {
    const small = width < 640;
    const host = small ? 58 : 132;
    const router = small ? 36 : 64;
    const free = width - 2 * host - router;
    const share = this.toRouter / (this.toRouter + this.toReceiver || 1);
    const left = host + Math.min(Math.max(share, 0.22), 0.6) * free;
    const [forward, backward] = [height - 88, height - 30];
    return {
      ...{ small, width, height, host, router, left, right: left + router, forward, backward },
      ...{ end: width - host, top: 30, base: forward - 22, bar: small ? 14 : 18 },
      quench: Math.max(34, (forward - 22) * 0.45),
    };
  }

  draw(t, speed) {
    if (!this.picture.clientWidth) return;
    const [context, width, height] = prepared(this.picture);
    const palette = colours();
    const place = this.layout(width, height);
    const drawing = { context, palette, place, t, speed };
    this.drawStage(drawing);
    const waiting = this.waitingAt(t);
    this.drawQueue(drawing, waiting);
    for (const i of this.candidates(t, FALL_S * speed * 1e9)) this.drawPacket(drawing, i);
    this.picture.dataset.waiting = waiting.length;
    this.drawStrip(t);
  }

  drawStage({ context: c, palette, place, t }) {
    const { small, host, router, left, forward, backward, end, height, width, bar } = place;
    c.strokeStyle = palette.rule;
    c.lineWidth = 2;
    line(c, host, forward + bar / 2 + 5, end, forward + bar / 2 + 5);
    line(c, host, forward - bar / 2 - 5, left, forward - bar / 2 - 5);
    line(c, left + router, forward - bar / 2 - 5, end, forward - bar / 2 - 5);
    c.setLineDash([4, 5]);
    line(c, host, backward, end, backward);
    if (this.counts.quenches) {
      c.strokeStyle = palette[QUENCHED];
      c.globalAlpha = 0.5;
      line(c, host, place.quench, left, place.quench);
      c.globalAlpha = 1;
    }
    c.setLineDash([]);
    c.fillStyle = palette.rule;
    const top = this.counts.quenches ? place.quench - 22 : forward - 40;
    box(c, 1, top, host - 2, height - 8 - top);
    box(c, end + 1, forward - 40, host - 2, height - 8 - forward + 40);
    box(c, left, forward - 18, router, 36);
    c.fillStyle = palette.ink;
    const size = small ? 11 : 17;
    c.font = `600 ${size}px ${font}`;
    c.textAlign = "center";
    c.fillText("receiver", end + host / 2, forward - 20);
    c.fillText("sender", host / 2, top + size + 4);
    c.font = `${size - 3}px ${font}`;
    c.fillStyle = palette.muted;
    c.fillText("ACKs", (left + router + end) / 2, backward - 9);
    c.fillText(this.link, left + router / 2, forward + 18 + size);
    if (this.counts.quenches) c.fillText("quenches", (host + left) / 2, place.quench - 14);
    c.textAlign = "left";
    this.windows.forEach((_, flow) => {
      const window = this.windowAt(flow, t);
      const y = top + 2 * size + 10 + flow * (size + 5);
      if (window === null || y > height - 12) return;
      c.fillStyle = palette[this.flows[flow].colour];
      c.fillRect(8, y - size * 0.65, small ? 6 : 10, size * 0.65);
      c.fillStyle = palette.ink;
      c.font = `${size - 2}px ${font}`;
      c.fillText(`${small ? "" : "cwnd "}${Math.round(window)}`, small ? 18 : 24, y);
    });
  }

  drawQueue(drawing, waiting) {
    const { context: c, palette, place, t } = drawing;
    const { left, router, base, top, small } = place;
    const p = this.packets;
    const visible = this.thresholds.filter(({ packets }) => packets <= 1.6 * this.highest.queue);
    const capacity = Math.max(this.highest.queue, ...visible.map(({ packets }) => packets)) * 1.03;
    const slot = Math.min(14, (base - top) / capacity);
    c.strokeStyle = palette.muted;
    c.lineWidth = 1.5;
    line(c, left - 3, top, left - 3, base);
    line(c, left + router + 3, top, left + router + 3, base);
    const high = Math.max(slot - (slot > 4 ? 1.5 : 0.3), 0.6);
    waiting.forEach((i, position) => {
      this.drawBody(drawing, i, left, base - (position + 1) * slot, router, high);
    });
    c.font = `${small ? 11 : 14}px ${font}`;
    c.textAlign = "left";
    // Labels of equal height stand one above the other.
    let below = Infinity;
    for (const { label, value, packets } of visible.sort((a, b) => a.packets - b.packets)) {
      const y = base - packets * slot;
      c.strokeStyle = palette.ink;
      c.setLineDash([6, 3]);
      line(c, left - 8, y, left + router + 8, y);
      c.setLineDash([]);
      c.fillStyle = palette.muted;
      const text = Math.min(y + 4, below - 15);
      below = text;
      c.fillText(small ? value : `${label} ${value}`, left + router + 12, text);
    }
    c.fillStyle = palette.ink;
    c.font = `600 ${small ? 13 : 18}px ${font}`;
    c.textAlign = "center";
    c.fillText(small ? waiting.length : `queue ${waiting.length}`, left + router / 2, top - 10);
    for (const i of this.candidates(t)) {
      if (p.start[i] > t || t >= p.left[i]) continue;
      const done = (t - p.start[i]) / (p.left[i] - p.start[i]);
      const y = place.forward - place.bar / 2;
      this.drawBody(drawing, i, left + done * router, y, (1 - done) * router, place.bar);
    }
  }

  /** Rectangle of a packet; a mark has the colour of marks, and a notch in the middle. */
  drawBody({ context: c, palette, t }, i, x, y, width, height) {
    const marked = this.isSignal(i, t);
    c.fillStyle = marked ? palette[MARK] : this.colourOf(i, palette);
    if (this.packets.kind[i] === ACK && !marked) c.globalAlpha = 0.55;
    c.fillRect(x, y, width, height);
    c.globalAlpha = 1;
    if (this.packets.flags[i] & AGAIN && height >= 4) {
      c.fillStyle = palette.ink;
      c.fillRect(x, y, width, Math.max(2, height / 6));
    }
    if (marked && width >= 3 && height >= 6) {
      c.fillStyle = palette.paper;
      c.fillRect(x + width * 0.3, y + height * 0.4, width * 0.4, height * 0.2);
    }
    if (this.ring.has(i)) {
      c.strokeStyle = palette.ink;
      c.lineWidth = 2.5;
      c.strokeRect(x - 3, y - 3, width + 6, height + 6);
    }
  }

  /** Draws a packet that is not in the queue. */
  drawPacket(drawing, i) {
    const { context: c, palette, place, t } = drawing;
    const p = this.packets;
    const { host, left, right, end, forward, backward, bar } = place;
    const y = forward - bar / 2;
    // Of a lost packet only the time of its loss is known.
    const ended = p.lost[i] ? Infinity : p.ended[i];
    if (p.ended[i] <= t) {
      this.drawEnd(drawing, i);
      return;
    }
    if (this.isInQueue(i, t)) return;
    if (p.kind[i] === QUENCH) {
      const x = left + (host - left) * part(t, p.sent[i], p.ended[i], this.toRouter);
      diamond(c, x, place.quench, palette[QUENCHED], this.ring.has(i) ? palette.ink : null);
    } else if (p.arrived[i] === Infinity) {
      const signal = this.isSignal(i, t);
      const size = signal ? 13 : p.kind[i] === ACK ? 7 : 10;
      const x = end + (host - end) * part(t, p.sent[i], ended, this.back);
      this.drawBody(drawing, i, x - size / 2, backward - size / 2, size, size);
    } else if (t < p.arrived[i]) {
      const x = host + (left - host) * part(t, p.sent[i], p.arrived[i], this.toRouter);
      const long = p.kind[i] === ACK ? 4 : 9;
      this.drawBody(drawing, i, Math.max(x - long, host), y, long, bar);
    } else {
      const way = ended < Infinity ? ended - p.left[i] : this.toReceiver;
      if (way <= 0) return;
      const head = Math.min(1, (t - p.start[i]) / way);
      const tail = Math.max(0, (t - p.left[i]) / way);
      const [from, to] = [right + tail * (end - right), right + head * (end - right)];
      // Neighbours stay apart.
      this.drawBody(drawing, i, from, y, Math.max(to - from - 1, 2), bar);
    }
  }

  /** Drops fall for a while; arriving signals leave a ring at the sender. */
  drawEnd({ context: c, palette, place, t, speed }, i) {
    const p = this.packets;
    const since = (t - p.ended[i]) / 1e9 / speed;
    if (p.lost[i]) {
      if (since > FALL_S || p.kind[i] === QUENCH) return;
      const fallen = calm.matches ? 0.3 : since / FALL_S;
      const { left, right, end, host, top, forward, backward } = place;
      let [x, from] = [left - 24, top + 16];
      if (p.arrived[i] === Infinity) {
        const done = part(p.ended[i], p.sent[i], Infinity, this.back);
        [x, from] = [end - 30 + (host - end + 60) * done, backward - 12];
      } else if (!this.wasDroppedHere(i)) {
        const done = part(p.ended[i], p.left[i], Infinity, this.toReceiver);
        [x, from] = [right + 30 + (end - right - 60) * done, forward];
      }
      const y = from + fallen ** 2 * (forward - from - 20);
      c.globalAlpha = 1 - fallen * 0.6;
      c.fillStyle = this.colourOf(i, palette);
      c.fillRect(x - 12, y - 6, 24, 12);
      c.strokeStyle = palette.ink;
      c.lineWidth = this.ring.has(i) ? 4 : 2.5;
      line(c, x - 9, y - 9, x + 9, y + 9);
      line(c, x - 9, y + 9, x + 9, y - 9);
      c.globalAlpha = 1;
      return;
    }
    const quench = p.kind[i] === QUENCH;
    const echo = p.kind[i] === ACK && p.flags[i] & ECHO && p.arrived[i] === Infinity;
    if ((!quench && !echo) || since > RING_S) return;
    c.strokeStyle = palette[quench ? QUENCHED : MARK];
    c.lineWidth = 4;
    c.beginPath();
    const radius = calm.matches ? 14 : 6 + (since / RING_S) * 16;
    c.arc(place.host, quench ? place.quench : place.backward, radius, 0, 2 * Math.PI);
    c.stroke();
  }

  /** Queue and windows over time, drawn once for each size and scheme, with a cursor. */
  drawStrip(t) {
    const [context, width, height] = prepared(this.strip);
    const key = [width, height, devicePixelRatio, dark.matches].join();
    if (this.stripKey !== key) {
      this.stripKey = key;
      this.stripPicture = document.createElement("canvas");
      this.stripPicture.width = this.strip.width;
      this.stripPicture.height = this.strip.height;
      const still = this.stripPicture.getContext("2d");
      still.scale(devicePixelRatio, devicePixelRatio);
      this.drawSeries(still, width, height);
    }
    context.drawImage(this.stripPicture, 0, 0, width, height);
    context.fillStyle = colours().ink;
    context.fillRect(this.stripX(t, width) - 1, 0, 2, height - 16);
  }

  stripX(t, width) {
    const [from, to] = this.window;
    return 40 + ((t - from) / (to - from)) * (width - 50);
  }

  timeAt(x, width) {
    const [from, to] = this.window;
    return from + Math.min(1, Math.max(0, (x - 40) / (width - 50))) * (to - from);
  }

  drawSeries(c, width, height) {
    const palette = colours();
    const [top, bottom] = [30, height - 18];
    const [from, to] = this.window;
    const highest = this.highest.packets;
    const y = (value) => bottom - (value / highest) * (bottom - top);
    c.fillStyle = palette.rule;
    let [column, peak, waiting] = [this.stripX(from, width), 0, 0];
    for (const [when, next] of [...this.steps, [to, 0]]) {
      const x = this.stripX(Math.min(Math.max(when, from), to), width);
      peak = Math.max(peak, waiting);
      if (x - column >= 0.5) {
        c.fillRect(column, y(peak), x - column + 0.3, bottom - y(peak));
        [column, peak] = [x, 0];
      }
      waiting = next;
    }
    c.lineWidth = 2;
    this.windows.forEach(({ time_s: times, packets }, flow) => {
      c.strokeStyle = palette[this.flows[flow].colour];
      c.beginPath();
      times.forEach((when, k) => c.lineTo(this.stripX(when * 1e9, width), y(packets[k])));
      c.stroke();
    });
    for (const { when, packet, quench } of this.signals) {
      const x = this.stripX(when, width);
      const marked = this.packets.marked[packet] > 0;
      c.fillStyle = quench !== null ? palette[QUENCHED] : marked ? palette[MARK] : palette.ink;
      c.fillRect(x - 1, marked ? 2 : 7, 2, marked ? 9 : 5);
    }
    c.fillStyle = palette.muted;
    c.font = `12px ${font}`;
    c.textAlign = "right";
    c.fillText(Math.round(highest), 36, top + 6);
    c.fillText("0", 36, bottom);
    c.textAlign = "center";
    const step = niceStep((to - from) / (width < 640 ? 4 : 10));
    const digits = Math.max(0, 9 - Math.floor(Math.log10(step)));
    for (let when = Math.ceil(from / step) * step; when <= to; when += step) {
      const x = this.stripX(when, width);
      const text = `${seconds(when, digits)} s`;
      c.fillText(text, Math.min(x, width - c.measureText(text).width / 2), height - 3);
    }
    c.textAlign = "right";
    c.fillText("packets: queue (grey) and cwnd", width - 10, top - 6);
  }
}

const font = getComputedStyle(document.body).fontFamily;

/** Part of a way, 0 to 1; ways without an end take the usual time. */
function part(t, from, to, usual) {
  const long = to < Infinity ? to - from : usual;
  return long > 0 ? Math.min(1, (t - from) / long) : 1;
}

/** Smallest of 1, 2 and 5 times a power of ten that is at least `least`. */
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= least * 0.999);
}

/** Context of a cleared canvas in CSS pixels, with its size. */
function prepared(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const scale = devicePixelRatio;
  const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return [context, width, height];
}

function line(c, x0, y0, x1, y1) {
  c.beginPath();
  c.moveTo(x0, y0);
  c.lineTo(x1, y1);
  c.stroke();
}

function box(c, x, y, width, height) {
  c.beginPath();
  c.roundRect(x, y, width, height, 6);
  c.fill();
}

function diamond(c, x, y, colour, ring) {
  c.beginPath();
  c.moveTo(x - 10, y);
  c.lineTo(x, y - 10);
  c.lineTo(x + 10, y);
  c.lineTo(x, y + 10);
  c.closePath();
  c.fillStyle = colour;
  c.fill();
  if (ring) {
    c.strokeStyle = ring;
    c.lineWidth = 2.5;
    c.stroke();
  }
}

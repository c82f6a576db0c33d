/** Clock of all scenes: the time shown, its speed, and the signals between which it steps. */
class Player {
  constructor(scenes) {
    this.scenes = scenes;
    for (const scene of scenes) scenes.forEach(({ highest }) => scene.raise(highest));
    this.from = Math.min(...scenes.map(({ window }) => window[0]));
    this.to = Math.max(...scenes.map(({ window }) => window[1]));
    this.signals = scenes.flatMap(({ signals }) => signals);
    this.signals = this.signals.filter(({ when }) => this.from <= when && when <= this.to);
    this.signals.sort((a, b) => a.when - b.when);
    this.playing = false;
    const rtt = Math.max(...scenes.map((scene) => scene.rtt), 1e3);
    this.speeds = [0, 1, 2, 3, 4].flatMap((power) => [10 ** power, 3 * 10 ** power]);
    // A round trip takes about six seconds.
    const wanted = 6e9 / rtt;
    this.slow = this.speeds.find((speed) => speed >= wanted) ?? this.speeds.at(-1);
    this.time = Math.max(this.from, (this.signals[0]?.when ?? this.from) - rtt / 8);
    this.build();
    this.draw();
  }

  get speed() {
    return 1 / this.slow;
  }

  build() {
    const speed = at("speed");
    for (const each of this.speeds) {
      speed.add(new Option(each === 1 ? "real time" : `1/${each}`, each));
    }
    speed.value = this.slow;
    speed.addEventListener("change", () => this.setSlow(Number(speed.value)));
    at("play").addEventListener("click", () => this.toggle());
    at("back").addEventListener("click", () => this.step(-1));
    at("forth").addEventListener("click", () => this.step(1));
    at("controls").addEventListener("submit", (event) => event.preventDefault());
    const scrubber = at("scrubber");
    scrubber.addEventListener("input", () => {
      this.say("");
      this.seek(this.from + (scrubber.value / scrubber.max) * (this.to - this.from));
    });
    for (const scene of this.scenes) {
      const { strip } = scene;
      const seek = (event) => {
        const { left, width } = strip.getBoundingClientRect();
        this.seek(scene.timeAt(event.clientX - left, width));
      };
      strip.addEventListener("pointerdown", (event) => {
        strip.setPointerCapture(event.pointerId);
        seek(event);
      });
      strip.addEventListener("pointermove", (event) => event.buttons && seek(event));
    }
    addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.draw()).observe(document.body);
    dark.addEventListener("change", () => this.draw());
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const inControl = (names) => event.target.matches?.(names);
    const small = (this.speed * 1e9) / 10;
    const actions = {
      n: () => this.step(1),
      p: () => this.step(-1),
      "+": () => this.change(-1),
      "-": () => this.change(1),
    };
    // A focused control has its own meaning of these keys.
    if (!inControl("select, button")) actions[" "] = () => this.toggle();
    if (!inControl("select, input")) {
      actions.ArrowLeft = () => this.seek(this.time - small);
      actions.ArrowRight = () => this.seek(this.time + small);
    }
    const action = actions[event.key] ?? actions[event.key.toLowerCase()];
    if (action === undefined || (inControl("select") && event.key.length === 1)) return;
    event.preventDefault();
    action();
  }

  setSlow(slow) {
    this.slow = slow;
    at("speed").value = slow;
    this.draw();
  }

  change(by) {
    const index = this.speeds.indexOf(this.slow) + by;
    if (index in this.speeds) this.setSlow(this.speeds[index]);
  }

  toggle() {
    this.playing = !this.playing;
    at("play").textContent = this.playing ? "⏸ Pause" : "▶ Play";
    if (!this.playing) return;
    if (this.time >= this.to) this.time = this.from;
    this.last = performance.now();
    requestAnimationFrame((now) => this.tick(now));
  }

  tick(now) {
    if (!this.playing) return;
    // With reduced motion, two still pictures a second.
    if (!calm.matches || now - this.last >= 500) {
      const elapsed_s = Math.max(0, now - this.last) / 1000;
      this.last = now;
      this.seek(this.time + elapsed_s * this.speed * 1e9);
      if (this.time >= this.to) this.toggle();
    }
    if (this.playing) requestAnimationFrame((then) => this.tick(then));
  }

  seek(time) {
    this.time = Math.min(Math.max(time, this.from), this.to);
    this.draw();
  }

  /** Goes to the next or previous signal and rings its packets. */
  step(by) {
    const times = this.signals.map(({ when }) => when);
    const index = by > 0 ? lowerBound(times, this.time + 1) : lowerBound(times, this.time) - 1;
    const signal = this.signals[index];
    if (signal === undefined) {
      this.say(`There is no ${by > 0 ? "later" : "earlier"} mark, loss or quench.`);
      return;
    }
    for (const scene of this.scenes) scene.ring.clear();
    const { scene, packet, quench, echo } = signal;
    for (const i of [packet, quench, echo]) if (i !== null) scene.ring.add(i);
    this.say(scene.describe(signal));
    this.seek(signal.when);
  }

  say(text) {
    at("status").textContent = text;
  }

  draw() {
    for (const scene of this.scenes) scene.draw(this.time, this.speed);
    const digits = Math.min(6, Math.max(2, Math.ceil(Math.log10(this.slow)) + 1));
    at("time").value = `t = ${seconds(this.time, digits)} s`;
    const scrubber = at("scrubber");
    scrubber.value = Math.round(((this.time - this.from) / (this.to - this.from)) * scrubber.max);
    scrubber.setAttribute("aria-valuetext", `${seconds(this.time, digits)} seconds`);
  }
}

async function load() {
  const bytes = Uint8Array.from(atob(at("packets").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = await new Response(stream).json();
  const figures = [...document.querySelectorAll(".scene")];
  window.player = new Player(data.map((scene, index) => new Scene(figures[index], scene)));
  document.documentElement.dataset.animation = "ready";
}

load().catch((error) => {
  const failure = at("failure");
  failure.hidden = false;
  failure.textContent = `No animation: ${error.message}. It needs a browser of 2023 or later.`;
});

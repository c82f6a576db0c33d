/**
 * The worker of a set-up. It owns the scenario's text: `{ text }` replaces it, `{ changes }` edits
 * it, `{ index }` selects a run of its sweep. Each message has a number, `seq`; answers carry the
 * newest one that they include. A run that takes longer shows its beginning first.
 */

/** Time until a first picture of a long run, and between later ones, ms. */
const FIRST_MS = 45;
const LATER_MS = 150;
/** Time between looks at new messages, ms. */
const TURN_MS = 10;
/** Events between looks at the clock. */
const EVENTS = 4000;

const inbox = [];
const channel = new MessageChannel();
let module, core;
let text = "";
let index = 0;
let seq = 0;
let isBusy = false;

onmessage = async ({ data }) => {
  inbox.push(data);
  if (isBusy) return;
  isBusy = true;
  while (inbox.length) await answer();
  isBusy = false;
};

/** Waits until messages that have arrived are in the inbox. */
function turn() {
  return new Promise((done) => {
    channel.port1.onmessage = done;
    channel.port2.postMessage(null);
  });
}

async function answer() {
  try {
    while (inbox.length) await receive(inbox.shift());
    await simulate();
  } catch (error) {
    // A trap leaves the module in an unknown state.
    core = await loadCore(module);
    const internal = error instanceof WebAssembly.RuntimeError ? "internal error: " : "";
    const message = `error: ${internal}${error.message}`;
    postMessage({ seq, text, errors: { text: message, list: [] } });
  }
}

async function receive(message) {
  seq = message.seq;
  if (message.module) {
    module = message.module;
    core = await loadCore(module);
    postMessage({ seq, schema: core.schema() });
  }
  text = message.text ?? text;
  index = message.index ?? index;
  if (message.changes) text = core.change(text, message.changes);
}

async function simulate() {
  const started = performance.now();
  const { facts, errors } = core.open(text, index);
  postMessage({ seq, text, facts, errors });
  if (errors) return;
  let [picture, turned, isShown] = [started + FIRST_MS, started, false];
  while (core.advance(EVENTS)) {
    const now = performance.now();
    if (now >= picture) {
      show(core.series(), true, now - started);
      isShown = true;
      picture = performance.now() + LATER_MS;
    }
    if (now - turned < TURN_MS) continue;
    await turn();
    turned = performance.now();
    // A slider that moves all the time still shows something.
    if (inbox.length && isShown) return;
  }
  const took = performance.now() - started;
  show(core.results(), false, took);
}

function show(tables, isPartial, took) {
  postMessage({ seq, tables, isPartial, took }, [tables]);
}

"use strict";

/** The simulator: calls of a compiled WebAssembly module, in a worker of the page or in Node. */
async function loadCore(module) {
  const instance = await WebAssembly.instantiate(module);
  const { memory, input, output, ...calls } = instance.exports;
  const give = (text) => {
    const bytes = new TextEncoder().encode(text);
    const at = input(bytes.length);
    new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
  };
  const answer = (length) => memory.buffer.slice(output(), output() + length);
  const answerText = (length) => new TextDecoder().decode(answer(length));
  return {
    schema: () => JSON.parse(answerText(calls.schema())),
    /** Opens run `index` of a scenario: `{ facts }` or `{ errors }`. */
    open(text, index) {
      give(text);
      const found = JSON.parse(answerText(calls.open(index)));
      return calls.is_open() ? { facts: found } : { errors: found };
    },
    /** Handles so many events; `true` while the run goes on. */
    advance: (events) => calls.advance(events) !== 0,
    /** Tables so far, as bytes for `readTables`. */
    series: () => answer(calls.series()),
    /** All tables at the end of the run. */
    results: () => answer(calls.results()),
    /** A scenario after changes `[[path, value], …]`. */
    change(text, changes) {
      give(`${JSON.stringify(changes)}\n${text}`);
      const changed = answerText(calls.change());
      if (changed[0] === "\0") throw new Error(changed.slice(1));
      return changed;
    },
  };
}

/** Reads tables: facts of the run, and `tables[name][column]` as arrays of numbers or labels. */
function readTables(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const head = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  const { tables, ...facts } = JSON.parse(head);
  let at = Math.ceil((4 + length) / 8) * 8;
  const read = ({ rows, columns }) =>
    Object.fromEntries(
      columns.map(({ name, labels }) => {
        const values = new Float64Array(buffer, at, rows);
        at += 8 * rows;
        return [name, labels ? Array.from(values, (code) => labels[code]) : values];
      }),
    );
  return { ...facts, tables: Object.fromEntries(tables.map((each) => [each.name, read(each)])) };
}

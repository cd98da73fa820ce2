/**
 * What the main thread of a server leaves to V8's garbage collector, from the lines that V8 writes into its log with
 * `--trace-gc`. A mail costs what it allocates twice: once to make it, once to find that little of it is still needed.
 */

/** A flag for NODE_OPTIONS, which takes few flags of V8. */
export const traceGarbage = `--import=data:text/javascript,import{setFlagsFromString}from'node:v8';setFlagsFromString('--trace-gc')`;

export interface Garbage {
  kilobytes: number;
  /** Collections of the whole heap, each of which throws machine code away. */
  full: number;
}

const collection =
  /^\[\d+:(0x[0-9a-f]+).* ms: (Scavenge|Mark-Compact)\D*([\d.]+) \([\d.]+\) -> ([\d.]+) \(/gm;

/** Since the start; the first thread in the log is the main one. */
export function garbageIn(log: string): Garbage {
  const all = [...log.matchAll(collection)];
  const sum = { kilobytes: 0, full: 0 };
  let kept = 0;
  for (const [, thread, kind, before, after] of all) {
    if (thread !== all[0]![1]) continue;
    sum.kilobytes += (Number(before) - kept) * 1024;
    kept = Number(after);
    if (kind === 'Mark-Compact') sum.full += 1;
  }
  return sum;
}

/** Ends a script that looks for faults: prints what it saw and the faults, and exits 0 if there are none, else 1. */

export interface Conclusion {
  faults: string[];
  /** Printed instead, with the faults, if JSON was requested. */
  json?: false | object;
  /** Prints the results for a reader, if there are any. */
  print?(): unknown;
  holds?: string;
}

export function conclude({ faults, json, print = () => {}, holds = 'It holds.' }: Conclusion): never {
  if (json) console.log(JSON.stringify({ ...json, faults }, null, 2));
  else {
    print();
    console.log(faults.length === 0 ? `\n${holds}` : `\nIt does not hold:\n  ${faults.join('\n  ')}`);
  }
  process.exit(faults.length === 0 ? 0 : 1);
}

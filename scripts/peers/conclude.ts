/** How a script that looks for faults ends: says what it saw and whether it holds, and exits 0 where it does, else 1. */

export interface Conclusion {
  faults: string[];
  /** What is printed instead, beside the faults, where JSON was asked for. */
  json: false | object;
  /** What was seen, for people; nothing where it came to nothing. */
  print(): void;
  holds?: string;
}

export function conclude({ faults, json, print, holds = 'It holds.' }: Conclusion): never {
  if (json) console.log(JSON.stringify({ ...json, faults }, null, 2));
  else {
    print();
    console.log(faults.length === 0 ? `\n${holds}` : `\nIt does not hold:\n  ${faults.join('\n  ')}`);
  }
  process.exit(faults.length === 0 ? 0 : 1);
}

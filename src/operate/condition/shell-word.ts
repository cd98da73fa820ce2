/** A name as a word of a command line. */
export function shellWord(name: string): string {
  return /^[\w.@:/+-]+$/.test(name) ? name : `'${name.replaceAll("'", String.raw`'\''`)}'`;
}

/** What the command line could not do, or would not: its message is the one line that the operator reads, exit 1. */
export class Failure extends Error {
  override name = 'Failure';
}

/** An error of the command line itself. Its message is the one line that the operator reads; the exit code is 1. */
export class Failure extends Error {
  override name = 'Failure';
}

import { Refusal } from '#platform/values/refusal.ts';

/** An error of the command line itself. Its message is the one line that the operator reads; the exit code is 1. */
export class Failure extends Error {
  override name = 'Failure';
}

/** What the services refuse is one line, too. */
export function asFailure(error: unknown): never {
  throw error instanceof Refusal ? new Failure(error.message) : error;
}

/**
 * Waiting in tests: asks until the answer is truthy, and says what it waited for when it never is. The first pause is 10 ms, later
 * ones are longer, up to 50: several tests of a process wait at once, and asking takes the time of what they wait for.
 * Tests never sleep for luck. A condition that throws is asked again; its last error becomes the cause.
 *
 * BUGS: a condition whose promise never settles is not interrupted; AVA's own timeout ends that test.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

export type Truthy<T> = Exclude<T, false | 0 | '' | null | undefined>;

export interface UntilOptions {
  /** Milliseconds of real time, after which it hangs: minutes, because a machine may be slow or have other work. */
  timeout?: number;
  /** What is waited for; a function is called at the end, to tell what was there instead. */
  what?: string | (() => string);
  /** The longest pause; for a condition that brings about by itself what is waited for, as short as the first. */
  maxPauseMs?: number;
}

const minPauseMs = 10;

export async function until<T>(
  condition: () => T | Promise<T>,
  { timeout = 300_000, what = 'the condition', maxPauseMs = 50 }: UntilOptions = {},
): Promise<Truthy<T>> {
  const end = performance.now() + timeout;
  for (let pauseMs = minPauseMs; ; pauseMs = Math.min(pauseMs * 1.2, maxPauseMs)) {
    const result = await ask(condition);
    if ('value' in result && result.value) return result.value as Truthy<T>;
    if (performance.now() >= end) throw tooLate(typeof what === 'string' ? what : what(), timeout, result);
    await sleep(pauseMs);
  }
}

type Result<T> = { value: T } | { error: unknown };

async function ask<T>(condition: () => T | Promise<T>): Promise<Result<T>> {
  try {
    return { value: await condition() };
  } catch (error) {
    return { error };
  }
}

function tooLate(what: string, timeout: number, result: Result<unknown>): Error {
  const failed = 'error' in result;
  const last = failed ? `last error: ${result.error}` : `last value: ${inspect(result.value)}`;
  return new Error(`waited ${timeout} ms (${last}) for ${what}`, failed ? { cause: result.error } : {});
}

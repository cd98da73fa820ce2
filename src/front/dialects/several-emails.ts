/**
 * Accepts the emails of a call that has several, a few at a time, so that they share commits. Either each is accepted or refused
 * by itself, or the first refusal ends the call.
 */
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import type { Accepted } from '#mail/accept/accept.ts';
import type { SendRequest } from '#mail/accept/requested-send.ts';
import { asRefusal, Refusal } from '#platform/values/refusal.ts';
import type { DialectCall } from './dialect.ts';

const atOnce = 10;

interface Several<Result> {
  count: number;
  accept(index: number): Promise<Result>;
  afterRefusal: 'accept the others' | 'stop';
  atOnce?: number;
}

/** In their order. After a refusal that stops, the later ones have no result. */
export async function acceptSeveral<Result>(several: Several<Result>): Promise<(Result | Refusal)[]> {
  const { count, accept, afterRefusal } = several;
  const results: (Result | Refusal)[] = [];
  const acceptOne = async (index: number) => {
    await yieldToOthers();
    return accept(index).catch(asRefusal);
  };
  // The first one alone: what is refused for all is refused before any is accepted.
  for (let size = 1; results.length < count; size = several.atOnce ?? atOnce) {
    const left = Math.min(size, count - results.length);
    const next = Array.from({ length: left }, (_, index) => acceptOne(results.length + index));
    results.push(...(await Promise.all(next)));
    if (afterRefusal === 'stop' && results.some((one) => one instanceof Refusal)) break;
  }
  return results;
}

/** The emails that a call makes of one body, each for recipients of its own. */
export interface MadeEmails {
  count: number;
  /** Makes an email, and makes it again: all of them together could need gigabytes. */
  at(index: number): SendRequest;
  /** The noun for each of them in errors. */
  noun: string;
  /** Nothing is stored, charged or sent. */
  isDryRun: boolean;
}

/** An email with more is composed alone. */
const largeBytes = 256 * 1024;

/**
 * Checks all of them before one is accepted. If one is refused after others were accepted, as when the credits end, the error
 * says how many; a repeat with the same Idempotency-Key sends the others. Resolves to the first.
 */
export async function acceptMade(call: DialectCall, emails: MadeEmails): Promise<Accepted> {
  const { count, at, noun, isDryRun } = emails;
  await requireWithinBudget(emails);
  const take = isDryRun ? call.dryRun : call.accept;
  const results = await acceptSeveral({
    count,
    accept: (index) => take(at(index), call.caller),
    afterRefusal: 'stop',
    atOnce: weightOf(at(0)) > largeBytes ? 1 : atOnce,
  });
  const accepted = results.filter((one): one is Accepted => !(one instanceof Refusal));
  const refusal = results.find((one) => one instanceof Refusal);
  if (!refusal) return accepted[0]!;
  if (accepted.length > 0 && !isDryRun)
    refusal.message += ` ${accepted.length} of ${count} ${noun}s were accepted before.`;
  throw refusal;
}

const maxWeight = 25 * 1024 * 1024;

/** A thousand emails can be made of a few kilobytes. In tests too, because they cost as much work. */
async function requireWithinBudget({ count, at }: MadeEmails): Promise<void> {
  let weight = 0;
  for (let index = 0; index < count; index += 1) {
    weight += weightOf(at(index));
    if (weight > maxWeight)
      throw new Refusal(
        'BAD_REQUEST',
        'The emails of this call have more than 25 MiB together. Make several calls.',
      );
    await yieldToOthers();
  }
}

/** The cost of a member or an element beside its texts. */
const overhead = 8;

/** The approximate size of a value, in characters of its texts and bytes of its files. */
function weightOf(value: unknown): number {
  if (typeof value === 'string' || value instanceof Uint8Array) return value.length + overhead;
  if (typeof value !== 'object' || value === null) return overhead;
  return Object.entries(value).reduce((sum, [name, one]) => sum + name.length + weightOf(one), overhead);
}

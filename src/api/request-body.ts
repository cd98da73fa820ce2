/**
 * The request's body, JSON or CSV. Refuses what is too large without reading it, what arrives too slowly, JSON of more
 * members than any valid body has, and JSON that is not UTF-8.
 */
import type { IncomingMessage } from 'node:http';
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import getRawBody from 'raw-body';
import { transferRate } from '../base/minimum-rate.ts';
import { Refusal } from '../mail/refusal.ts';
import type { Slot } from './admission.ts';
import { createMemberLimit } from './json-members.ts';

const largest = 20 * 1024 * 1024;

/** What a body must be, and how much of it is read. */
export interface BodyForm {
  type: 'application/json' | 'text/csv';
  largest: number;
}

/** `place`: counts what arrives. */
export async function readBody(
  request: IncomingMessage,
  slot: Pick<Slot, 'add'>,
  { type, largest: limit }: BodyForm = { type: 'application/json', largest },
): Promise<Buffer> {
  requireType(request.headers['content-type'], type);
  const monitor = monitorBody(request, slot, type === 'application/json' ? createMemberLimit() : () => {});
  const arrived = getRawBody(request, {
    limit,
    length: request.headers['content-length'] ?? null,
  }).catch((error: Error & { type?: string }) => {
    if (error.type === 'entity.too.large')
      throw new Refusal('BAD_REQUEST', `The body is larger than ${sizeOf(limit)}.`);
    throw new Refusal('BAD_REQUEST', 'The body did not arrive whole.');
  });
  return Promise.race([arrived, monitor.refused]).finally(monitor.stop);
}

/** Looks at a body chunk by chunk while it arrives. Of a body that is refused no more is read. */
function monitorBody(request: IncomingMessage, slot: Pick<Slot, 'add'>, check: (chunk: Buffer) => void) {
  const { promise: refused, reject } = Promise.withResolvers<never>();
  const refuse = (refusal: unknown) => {
    stop();
    request.pause();
    reject(refusal);
  };
  const startTimer = () => transferRate.watch(() => refuse(tooSlow()));
  let timer = startTimer();

  function take(chunk: Buffer): void {
    timer.received(chunk.length);
    try {
      check(chunk);
    } catch (refusal) {
      refuse(refusal);
      return;
    }
    const fits = slot.add(chunk.length);
    if (fits !== true) void pauseUntil(fits);
  }

  /** The client is not slow while it is we who do not read. */
  async function pauseUntil(fits: Promise<boolean>): Promise<void> {
    request.pause();
    timer.stop();
    const isGiven = await fits;
    if (isStopped) return;
    if (!isGiven) return refuse(new BodyBudgetExceeded());
    timer = startTimer();
    request.resume();
  }

  let isStopped = false;
  function stop(): void {
    isStopped = true;
    timer.stop();
    request.off('data', take);
  }

  request.on('data', take);
  return { refused, stop };
}

function tooSlow(): Refusal {
  return new Refusal('BAD_REQUEST', 'The body arrived too slowly. Send at least 16 KB a second.');
}

/** 429 after the request was counted, so it is to be counted no more (api-app.ts). */
export class BodyBudgetExceeded extends Refusal {
  constructor() {
    const message = 'Too many bodies are being received. Nothing was charged; retry in 1 s.';
    super('RATE_LIMIT_EXCEEDED', message, { retryAfterMs: 1000 });
  }
}

function sizeOf(bytes: number): string {
  return bytes < 1024 * 1024 ? `${bytes / 1024} KiB` : `${bytes / 1024 / 1024} MiB`;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Others have their turn between decoding a large body and parsing it: each can take a tenth of a second. */
const large = 1024 * 1024;

export async function parseJson(bytes: Buffer): Promise<unknown> {
  try {
    const text = utf8.decode(bytes);
    if (bytes.length > large) await yieldToOthers();
    return JSON.parse(text);
  } catch (error) {
    const notJson = error instanceof SyntaxError;
    throw new Refusal(
      'BAD_REQUEST',
      notJson ? `The body is not JSON: ${error.message}` : 'The body is not UTF-8.',
    );
  }
}

const types = {
  'application/json': /^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i,
  // It may say whether it has headings (RFC 4180 section 3), which is seen anyway.
  'text/csv': /^text\/csv\s*(;.*)?$/i,
};

function requireType(header: string | undefined, type: BodyForm['type']): void {
  if (header && types[type].test(header)) return;
  throw new Refusal('BAD_REQUEST', `Content-Type must be ${type}.`);
}

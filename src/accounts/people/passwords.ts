/**
 * Passwords: scrypt (RFC 7914), stored with its parameters, so that they can be raised while old hashes still verify. Two hashes
 * are computed at a time, because each takes 16 MiB and a thread of the pool that the database also uses: one for people who have
 * a session, a link or a known browser, and one for strangers, who could otherwise keep the others waiting.
 */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { Slots } from '#platform/base/limits/slots.ts';
import { Refusal } from '#platform/values/refusal.ts';

export interface Cost {
  N: number;
  r: number;
  p: number;
}

/** As strong as OWASP's first choice (2^17, 8, 1), with an eighth of its memory. */
export const defaultCost: Cost = { N: 2 ** 14, r: 8, p: 5 };
const saltBytes = 16;
const keyBytes = 32;

const minLength = 12;
const maxLength = 500;
/** In each line, in work or waiting. Both lines leave room among the pages for people who are not signed in. */
const maxInLine = { inAll: 10, ofOne: 4 };
const retryDelayMs = 5000;

/** The problem of a new password; null if there is none. */
export function passwordProblem(password: string, email: string): string | null {
  if (password.length < minLength)
    return `Use at least ${minLength} characters. A few words are easy to remember.`;
  if (password.length > maxLength) return `Use at most ${maxLength} characters.`;
  if (new Set(password).size < 5)
    return 'This password repeats too few characters. Use a few different words.';
  const own = email.toLowerCase();
  if (own.includes(password.toLowerCase()) || password.toLowerCase().includes(own))
    return 'This password is part of your email address or contains it. Choose another one.';
  return null;
}

/** Who asks: an account, or the network of a stranger. */
interface Asking {
  isKnown: boolean;
  owner: string;
}

export interface Passwords {
  /** For an account of somebody who has a session or a link. */
  hash(password: string, account: string): Promise<string>;
  /** Takes as long without a hash, so that the time does not show whether an account exists. */
  verify(password: string, hash: string | null, asking: Asking): Promise<boolean>;
}

export function createPasswords(cost: Cost = defaultCost): Passwords {
  const encode = (salt: Buffer, key: Buffer) =>
    ['scrypt', cost.N, cost.r, cost.p, salt.toString('base64url'), key.toString('base64url')].join('$');
  const placeholderHash = encode(Buffer.alloc(saltBytes), Buffer.alloc(keyBytes));
  const lines = { known: createLine(), strangers: createLine() };

  return {
    async hash(password, account) {
      const salt = randomBytes(saltBytes);
      return encode(salt, await lines.known(account, () => derive(password, salt, cost)));
    },
    async verify(password, hash, { isKnown, owner }) {
      const [, N, r, p, salt, key] = (hash ?? placeholderHash).split('$');
      const expected = Buffer.from(key!, 'base64url');
      const options = { N: Number(N), r: Number(r), p: Number(p) };
      const found = await lines[isKnown ? 'known' : 'strangers'](owner, () =>
        derive(password, Buffer.from(salt!, 'base64url'), options),
      );
      return timingSafeEqual(found, expected) && hash !== null;
    },
  };
}

/** One at a time. */
function createLine() {
  const places = new Slots(maxInLine);
  let last: Promise<unknown> = Promise.resolve();
  return async (owner: string, work: () => Promise<Buffer>): Promise<Buffer> => {
    const leave = places.take(owner);
    if (typeof leave !== 'function')
      throw new Refusal(
        'RATE_LIMIT_EXCEEDED',
        'Too many people are signing in right now. Try again in a few seconds.',
        { retryAfterMs: retryDelayMs },
      );
    const mine = last.then(work);
    last = mine.catch(() => {});
    return mine.finally(leave);
  };
}

/** Normalized (NIST SP 800-63B), because the same password typed on two systems may differ in its code points. */
function derive(password: string, salt: Buffer, options: ScryptOptions): Promise<Buffer> {
  const { N, r, p } = options as Cost;
  const maxmem = 2 * 128 * r * (N + p + 2);
  return new Promise((resolve, reject) => {
    scrypt(
      password.normalize('NFKC').slice(0, maxLength * 4),
      salt,
      keyBytes,
      { ...options, maxmem },
      (error, key) => (error ? reject(error) : resolve(key)),
    );
  });
}

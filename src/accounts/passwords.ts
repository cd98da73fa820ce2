/**
 * Passwords: scrypt (RFC 7914), kept with its parameters, so that they can be raised and old hashes still verify. One is
 * worked out at a time and few wait in line: each takes 16 MiB and a thread that the database needs as well.
 */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { Refusal } from '../mail/refusal.ts';

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
const maxWaiting = 32;
const retryDelayMs = 5000;

/** What is wrong with a password that somebody chose; null where nothing is. */
export function passwordFault(password: string, email: string): string | null {
  if (password.length < minLength)
    return `Take ${minLength} characters or more; a few words are easy to remember.`;
  if (password.length > maxLength) return `Take ${maxLength} characters at most.`;
  if (new Set(password).size < 5) return 'That repeats itself too much; take a few words.';
  const own = email.toLowerCase();
  if (own.includes(password.toLowerCase()) || password.toLowerCase().includes(own))
    return 'That is your address; take something that nobody knows.';
  return null;
}

export interface Passwords {
  hash(password: string): Promise<string>;
  /** Takes as long where there is no hash: nobody learns from the time who has an account. */
  verify(password: string, hash: string | null): Promise<boolean>;
}

export function createPasswords(cost: Cost = defaultCost): Passwords {
  const encode = (salt: Buffer, key: Buffer) =>
    ['scrypt', cost.N, cost.r, cost.p, salt.toString('base64url'), key.toString('base64url')].join('$');
  const placeholderHash = encode(Buffer.alloc(saltBytes), Buffer.alloc(keyBytes));
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;

  async function deriveInTurn(password: string, salt: Buffer, options: ScryptOptions): Promise<Buffer> {
    if (waiting >= maxWaiting)
      throw new Refusal(
        'RATE_LIMIT_EXCEEDED',
        'Too many people sign in just now; try again in a few seconds.',
        {
          retryAfterMs: retryDelayMs,
        },
      );
    waiting += 1;
    const mine = last.then(() => derive(password, salt, options));
    last = mine.catch(() => {});
    return mine.finally(() => {
      waiting -= 1;
    });
  }

  return {
    async hash(password) {
      const salt = randomBytes(saltBytes);
      return encode(salt, await deriveInTurn(password, salt, cost));
    },
    async verify(password, hash) {
      const [, N, r, p, salt, key] = (hash ?? placeholderHash).split('$');
      const expected = Buffer.from(key!, 'base64url');
      const options = { N: Number(N), r: Number(r), p: Number(p) };
      const found = await deriveInTurn(password, Buffer.from(salt!, 'base64url'), options);
      return timingSafeEqual(found, expected) && hash !== null;
    },
  };
}

/** The same text typed on two machines may differ in its code points; so it is normalized (NIST SP 800-63B). */
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

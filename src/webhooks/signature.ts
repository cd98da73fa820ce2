/** Secrets and signatures of Standard Webhooks: https://github.com/standard-webhooks/standard-webhooks. */
import { createHmac, randomBytes } from 'node:crypto';

const prefix = 'whsec_';

/** 256 bits; the specification requires 192 to 512. */
export function newSecret(): string {
  return prefix + randomBytes(32).toString('base64');
}

export interface Signed {
  id: string;
  /** Seconds since the epoch. */
  timestamp: number;
  body: string;
}

/** One signature per secret, so that a receiver with the old secret can also verify. */
export function sign(secrets: readonly string[], { id, timestamp, body }: Signed): string {
  const signatures = secrets.map((secret) =>
    createHmac('sha256', Buffer.from(secret.slice(prefix.length), 'base64'))
      .update(`${id}.${timestamp}.${body}`)
      .digest('base64'),
  );
  return signatures.map((signature) => `v1,${signature}`).join(' ');
}

/** The secrets that sign now, newest first. After a rotation the old one signs, too, until `oldSecretUntil`. */
export function secretsOf(
  {
    secret,
    oldSecret,
    oldSecretUntil,
  }: { secret: string; oldSecret: string | null; oldSecretUntil: number | null },
  now: number,
): string[] {
  return oldSecret !== null && oldSecretUntil! > now ? [secret, oldSecret] : [secret];
}

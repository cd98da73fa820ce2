/** Secrets and signatures as Standard Webhooks has them: https://github.com/standard-webhooks/standard-webhooks. */
import { createHmac, randomBytes } from 'node:crypto';

const prefix = 'whsec_';

/** 256 bits; the specification wants 192 to 512. */
export function newSecret(): string {
  return prefix + randomBytes(32).toString('base64');
}

export interface Signed {
  id: string;
  /** Seconds since the epoch. */
  timestamp: number;
  body: string;
}

/** One signature for each secret, so that whoever still has the old one can verify as well. */
export function sign(secrets: readonly string[], { id, timestamp, body }: Signed): string {
  const signatures = secrets.map((secret) =>
    createHmac('sha256', Buffer.from(secret.slice(prefix.length), 'base64'))
      .update(`${id}.${timestamp}.${body}`)
      .digest('base64'),
  );
  return signatures.map((signature) => `v1,${signature}`).join(' ');
}

/** What signs now, the newest first: after a rotation the old one as well, for a while. */
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

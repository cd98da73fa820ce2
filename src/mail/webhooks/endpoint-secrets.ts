/** Tells which secrets of an endpoint sign now. */

interface StoredSecrets {
  secret: string;
  oldSecret: string | null;
  oldSecretUntil: number | null;
}

/** Newest first. After a rotation the old secret signs, too, until `oldSecretUntil`, where the format can carry two signatures. */
export function secretsOf({ secret, oldSecret, oldSecretUntil }: StoredSecrets, now: number): string[] {
  return oldSecret !== null && oldSecretUntil! > now ? [secret, oldSecret] : [secret];
}

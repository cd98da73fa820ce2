/** What is remembered of a host whose TLS failed, so that the next mail does not try it in vain (offer.ts). */
import type { PersistentCache } from '#platform/base/persistent-cache.ts';

/** When and why TLS with a host failed, and what worked instead. */
export interface TlsFailure {
  at: number;
  reason: string;
  /** Outdated TLS; absent: no TLS. */
  legacy?: true;
}

/** Called when the host refused clear text: the next mail tries TLS again. */
export async function forgetTlsFailure(failures: PersistentCache<TlsFailure>, host: string): Promise<void> {
  const known = await failures.get(host).catch(() => null);
  if (known) await failures.set(host, known, 0).catch(() => {});
}

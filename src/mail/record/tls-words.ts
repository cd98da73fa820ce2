/** How a connection was protected, in words. */
import type { TlsUsed } from '#platform/values/glossary.ts';

/** "TLSv1.3, TLS_AES_256_GCM_SHA384, X25519MLKEM768, verified". */
export function tlsWords({ protocol, cipher, group, verified }: TlsUsed): string {
  const parts = [protocol, cipher, group, verified ? 'verified' : 'certificate not verified'];
  return parts.filter(Boolean).join(', ');
}

/**
 * Pools of source addresses: named sets of our own addresses (POSTERN_MTA_SOURCES), each address in one. An
 * organization's mail leaves from the addresses of one pool and no others: the one that it is pinned to, else this one.
 */
export const defaultPool = 'default';

/** We had nothing to call from, no address that serves or no socket: this says nothing of the host, which was not asked. */
export class NoSource extends Error {
  override name = 'NoSource';
}

/**
 * IP pools: named sets of our own source addresses (POSTERN_MTA_SOURCES); each address is in one pool. An organization's
 * mail leaves only from the pool that it is assigned to, or else from this one; a stream can have another.
 */
export const defaultPool = 'default';

/** Names a stream among the assignments to pools. */
export const streamPoolKey = (orgId: string, stream: string) => `${orgId} ${stream}`;

/** There was no usable source address or no socket. It says nothing about the remote host, which was not contacted. */
export class NoSource extends Error {
  override name = 'NoSource';
}

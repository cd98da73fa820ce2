/**
 * The arithmetic of sharing a destination's limits among nodes. The parts of all nodes add up to the limit; if the limit
 * is smaller than the number of nodes, the first nodes get one each and the others none.
 *
 * Rendezvous hashing gives each destination an order of its own, so that the same nodes are not first everywhere, and a
 * node that joins never makes another node's part larger.
 */

/** The part of `total` for the node at `rank` (from 0) among `count` nodes. */
export function shareOfLimit(total: number, count: number, rank: number): number {
  return Math.floor((total + count - 1 - rank) / count);
}

/** The position of `node` in the order that `nodes` have at the destination `name`. */
export function rankOf(node: string, nodes: readonly string[], name: string): number {
  const own = hash(`${node} ${name}`);
  const isBefore = (other: string) => {
    const theirs = hash(`${other} ${name}`);
    return theirs === own ? other < node : theirs < own;
  };
  return nodes.filter((other) => other !== node && isBefore(other)).length;
}

/** FNV-1a with a final mix, because names often differ in only a few letters. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

/**
 * The arithmetic of sharing: which part of a destination's limits each of several nodes has. The parts of all of them
 * add up to the whole, and where there is less than one for each, those that come first have one and the others none.
 *
 * The order is another one at each destination (rendezvous hashing), so that the first are not the same everywhere;
 * and where a node joins, nobody's part grows by it.
 */

/** Of `total`, what falls to the one of `count` that is at `rank`, from 0. */
export function part(total: number, count: number, rank: number): number {
  return Math.floor((total + count - 1 - rank) / count);
}

/** Where `node` stands among `nodes` at the destination of that name. */
export function rankOf(node: string, nodes: readonly string[], name: string): number {
  const own = hash(`${node} ${name}`);
  const isBefore = (other: string) => {
    const theirs = hash(`${other} ${name}`);
    return theirs === own ? other < node : theirs < own;
  };
  return nodes.filter((other) => other !== node && isBefore(other)).length;
}

/** FNV-1a, mixed once more: names differ in few letters. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

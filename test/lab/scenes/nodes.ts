/** Another node beside a world's own, in this process: on its database and clock, with a directory of its own. */
import type { ExecutionContext } from 'ava';
import { isPostgres } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import type { Overrides } from '#server/context.ts';
import { type Running, start } from '#server/start.ts';
import { keepOnFailure, memoryLog, temporaryDirectory } from '../evidence.ts';
import { threadsHere } from '../threads-here.ts';
import type { World } from './world.ts';

/** For the settings of the world. */
export const sharedSecret = { POSTERN_SECRET: 'one secret for all nodes' };

/** `changes`: what is set otherwise than for the world's node; `overrides`: as those of a world. */
export async function startNode(
  t: ExecutionContext,
  world: World,
  changes: Partial<Config> = {},
  overrides: Partial<Overrides> = {},
): Promise<Running> {
  const dataDir = await temporaryDirectory(t);
  const config = { ...world.config, dataDir, ...changes };
  const { log, text } = memoryLog();
  const node = await start(config, { clock: world.clock, log, ...threadsHere, ...overrides });
  t.teardown(node.stop);
  keepOnFailure(t, dataDir, 'server.log', text);
  return node;
}

/** A second passes, and each of so many nodes that send has begun its look since. */
export async function tickAll(world: World, count: number): Promise<void> {
  const before = world.clock.now();
  world.hasProgressed();
  // A node that sends alone looks only when something was committed, and says seldom that it is alive.
  if (isPostgres(world.db)) await world.db.raw('select txid_current()');
  else await world.db('organizations').update({ name: world.db.ref('name') });
  await world.clock.advance('1s');
  const hasLooked = async () =>
    count === 1 ? world.hasProgressed() : (await world.db('nodes').where('at', '>', before)).length === count;
  // On a slow machine, the timer of the next look may be set after the second.
  await world.clock.passUntil(hasLooked, { step: 10, what: `a look of ${count} nodes` });
}

/**
 * The command line has the machine's clock: the server's is set by it, and the server has read what has changed. The first look
 * may be too soon after another to read it, the second reads it if the first has not, and has ended when the third begins.
 */
export async function aSecondLater(world: World): Promise<void> {
  await world.clock.advance(Math.max(Date.now() - world.clock.now(), 0));
  for (let looks = 0; looks < 3; looks++) await tickAll(world, 1);
}

/** They have made room for each other. */
export async function settleAll(world: World, count: number): Promise<void> {
  for (let n = 0; n < 5; n++) await tickAll(world, count);
  const counted = new Set(await world.db('nodes').pluck('members'));
  if (counted.size !== 1) throw new Error(`the nodes count ${counted.size} different rosters`);
}

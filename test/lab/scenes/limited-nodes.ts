/** Several nodes in this process that share what destinations take: a rule and an exchanger for each domain. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import type { Running } from '#server/start.ts';
import { temporaryDirectory } from '../evidence.ts';
import type { Mx, MxOptions } from '../mx/mx.ts';
import { until } from '../until.ts';
import { settleAll, sharedSecret, startNode, tickAll } from './nodes.ts';
import { startWorld, type World } from './world.ts';

interface Destination {
  rule: { connections?: number; perMinute?: number };
  exchanger?: MxOptions;
}

export interface LimitedNodes<Name extends string> {
  world: World;
  /** Beside the world's own. */
  others: Running[];
  mx: Record<Name, Mx>;
  /** Through node `n`, of however many there are. */
  send(to: Name, n: number): Promise<void>;
  sendMany(to: Name, count: number): Promise<unknown>;
  /** The clock goes on until all has come, no faster than the nodes hear each other. */
  allReceived(from: Name, count: number): Promise<unknown>;
}

/** The destinations by the first label of their domain. */
export async function startLimitedNodes<Name extends string>(
  t: ExecutionContext,
  count: number,
  destinations: Record<Name, Destination>,
): Promise<LimitedNodes<Name>> {
  const directory = await temporaryDirectory(t);
  const POSTERN_SHAPING_FILE = join(directory, 'shaping.jsonc');
  const all = Object.entries<Destination>(destinations);
  const rules = all.map(([name, { rule }]) => ({ domain: `${name}.invalid`, ...rule }));
  await writeFile(POSTERN_SHAPING_FILE, JSON.stringify({ rules }));
  const world = await startWorld(t, {
    database: 'postgres',
    settings: { ...sharedSecret, POSTERN_SHAPING_FILE },
    exchangers: all.map(([, { exchanger }]) => exchanger ?? {}),
    zone: Object.fromEntries(
      all.map(([name], index) => [`${name}.invalid`, { MX: [`10 mx${index + 1}.invalid`] }]),
    ),
  });
  const others: Running[] = [];
  for (let n = 1; n < count; n++) others.push(await startNode(t, world));
  if (count > 1) await settleAll(world, count);
  const mx = Object.fromEntries(all.map(([name], index) => [name, world.mx[index]])) as Record<Name, Mx>;
  let sent = 0;
  const send = async (to: Name, n: number) => {
    const urls = [world.url(), ...others.map(({ url }) => url)];
    sent += 1;
    const mail = { to: `n${sent}@${to}.invalid`, subject: `${sent}` };
    t.is((await world.at(urls[n % urls.length]!).send(mail)).status, 200);
  };
  return {
    world,
    others,
    mx,
    send,
    sendMany: (to, number) => Promise.all(Array.from({ length: number }, (_, n) => send(to, n))),
    allReceived: (from, number) =>
      until(
        async () => {
          await tickAll(world, others.length + 1);
          return mx[from].messages.length >= number;
        },
        { what: () => `${number} messages; ${mx[from].messages.length} have come` },
      ),
  };
}

/** A server that answers nobody's DATA before it is told to. */
export function gated() {
  const gate = Promise.withResolvers<undefined>();
  return { open: () => gate.resolve(undefined), exchanger: { script: { data: () => gate.promise } } };
}

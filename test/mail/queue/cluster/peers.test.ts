/** A node reads of the others what they have published since it last heard of them, by their own clocks. */
import test from 'ava';
import { manualClock } from '#lab/clock.ts';
import type { Heartbeat } from '#mail/queue/cluster/membership.ts';
import { createPeers } from '#mail/queue/cluster/peers.ts';

test('reports are read since the last heartbeat of their node, and all of them after a change', async (t) => {
  const clock = manualClock();
  const begin = clock.now();
  const others = new Map<string, number>();
  const readAfter: number[] = [];
  const beats = () => [...others].map(([node, at]): Heartbeat => ({ node, members: '', at }));
  const peers = createPeers({
    node: 'own',
    min: 0,
    exchangeHeartbeats: async () => beats(),
    readHeartbeats: async () => beats(),
    async readReports(after) {
      readAfter.push(after - begin);
      return [];
    },
    leave: async () => {},
    onChange: () => {},
    clock,
  });
  const next = async (heartbeats: Record<string, number>) => {
    await clock.advance('1s');
    for (const [node, at] of Object.entries(heartbeats)) others.set(node, begin + at);
    await peers.exchange();
    return readAfter.splice(0);
  };
  t.deepEqual(await next({}), [], 'alone');
  t.deepEqual(await next({ two: 700 }), [2000 - 60_000], 'a new node: all that is fresh');
  t.deepEqual(await next({ two: 1700 }), [700], 'its clock is behind, and nothing is missed or read twice');
  t.deepEqual(await next({ two: 2700 }), [1700]);
  t.deepEqual(await next({ two: 3700, three: 9000 }), [5000 - 60_000]);
  t.deepEqual(await next({ two: 4700, three: 10_000 }), [3700], 'since the one that is longest ago');
  t.deepEqual(await next({ two: 100, three: 11_000 }), [7000 - 60_000], 'a clock was set back');
});

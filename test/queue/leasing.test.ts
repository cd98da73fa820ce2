/** Who is leased next: lines in fair parts, whatever each has waiting. */
import test from 'ava';
import { createLeasePolicy } from '../../src/queue/lease-policy.ts';
import { createReadyQueues } from '../../src/queue/ready-queues.ts';
import { defaultShape } from '../../src/settings/shaping-rules.ts';
import { manualClock } from '../helpers/clock.ts';

function newLeasing(names: string[]) {
  const clock = manualClock();
  const shape = defaultShape(20);
  const lines = createReadyQueues({ destinationOf: (name) => ({ name, shape }), onWaiting: () => {}, clock });
  for (const domain of names) lines.addLane(lines.known(domain)!, { domain, orgId: 'org' });
  return { ...createLeasePolicy(lines, clock, 500), lines };
}

const numbered = (count: number) => Array.from({ length: count }, (_, n) => `d${n}.invalid`);

test('of more lines than there is room for, each is served before one is served again', (t) => {
  const { pickLanes } = newLeasing(numbered(300));
  const first = pickLanes(200);
  t.is(first.picks.length, 200);
  t.true(first.picks.every(({ limit }) => limit === 1));
  t.true(first.isCut);
  const served = new Set(first.picks.map(({ line }) => line.name));
  const second = pickLanes(200).picks.map(({ line }) => line.name);
  t.is(second.filter((name) => !served.has(name)).length, 100);
});

test('a line by itself is given all that it has room for', (t) => {
  const { pickLanes, lines } = newLeasing(['a.invalid']);
  const { picks, isCut } = pickLanes(200);
  t.deepEqual(
    picks.map(({ limit }) => limit),
    [lines.known('a.invalid')!.room(0)],
  );
  t.false(isCut);
});

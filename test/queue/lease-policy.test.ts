/** Who is leased next: readyQueues in fair parts, whatever each has waiting. */
import test from 'ava';
import { createLeasePolicy } from '../../src/queue/lease-policy.ts';
import { createReadyQueues } from '../../src/queue/ready-queues.ts';
import { defaultShape } from '../../src/settings/shaping-rules.ts';
import { manualClock } from '../helpers/clock.ts';

function newLeasing(names: string[]) {
  const clock = manualClock();
  const shape = defaultShape(20);
  const readyQueues = createReadyQueues({
    destinationOf: (name) => ({ name, shape }),
    onWaiting: () => {},
    clock,
  });
  for (const domain of names) readyQueues.addBacklog(readyQueues.find(domain)!, { domain, orgId: 'org' });
  return { ...createLeasePolicy(readyQueues, clock, 500), readyQueues };
}

const numbered = (count: number) => Array.from({ length: count }, (_, n) => `d${n}.invalid`);

test('of more readyQueues than there is room for, each is served before one is served again', (t) => {
  const { pickBacklogs } = newLeasing(numbered(300));
  const first = pickBacklogs(200);
  t.is(first.claims.length, 200);
  t.true(first.claims.every(({ limit }) => limit === 1));
  t.true(first.isCut);
  const served = new Set(first.claims.map(({ readyQueue }) => readyQueue.name));
  const second = pickBacklogs(200).claims.map(({ readyQueue }) => readyQueue.name);
  t.is(second.filter((name) => !served.has(name)).length, 100);
});

test('a line by itself is given all that it has room for', (t) => {
  const { pickBacklogs, readyQueues } = newLeasing(['a.invalid']);
  const { claims, isCut } = pickBacklogs(200);
  t.deepEqual(
    claims.map(({ limit }) => limit),
    [readyQueues.find('a.invalid')!.freeSlots(0)],
  );
  t.false(isCut);
});

/** Which backlogs are claimed next: every ready queue gets a fair part, however much mail each has waiting. */
import test from 'ava';
import { manualClock } from '#lab/clock.ts';
import { LeasePolicy } from '#mail/queue/lease-policy.ts';
import { ReadyQueues } from '#mail/queue/ready-queues.ts';
import { defaultShape } from '#platform/settings/shaping-rules.ts';

function policyFor(domains: string[]) {
  const clock = manualClock();
  const shape = defaultShape(20);
  const readyQueues = new ReadyQueues({
    destinationOf: (name) => ({ name, shape }),
    resolve: async (name) => ({ name, shape }),
    onWaiting: () => {},
    notifyOthers: () => {},
    ownership: { isOurs: () => true },
    requestClaim: () => {},
    stopping: new AbortController().signal,
    clock,
  });
  for (const domain of domains) readyQueues.note({ domain, orgId: 'org' });
  return { policy: new LeasePolicy(readyQueues, clock, 500), readyQueues };
}

const numbered = (count: number) => Array.from({ length: count }, (_, n) => `d${n}.invalid`);

test('with more ready queues than free leases, each is served before any is served again', (t) => {
  const { policy } = policyFor(numbered(300));
  const first = policy.pickBacklogs(200);
  t.is(first.claims.length, 200);
  t.true(first.claims.every(({ limit }) => limit === 1));
  t.true(first.isCut);
  const served = new Set(first.claims.map(({ readyQueue }) => readyQueue.name));
  const second = policy.pickBacklogs(200).claims.map(({ readyQueue }) => readyQueue.name);
  t.is(second.filter((name) => !served.has(name)).length, 100);
});

test('a single ready queue gets as many leases as it has free slots', (t) => {
  const { policy, readyQueues } = policyFor(['a.invalid']);
  const { claims, isCut } = policy.pickBacklogs(200);
  t.deepEqual(
    claims.map(({ limit }) => limit),
    [readyQueues.find('a.invalid')!.freeSlots(0)],
  );
  t.false(isCut);
});

test('what is accepted does not go before what is known to wait for its destination', (t) => {
  const { policy, readyQueues } = policyFor(['a.invalid']);
  t.false(policy.mayLease(readyQueues.find('a.invalid'), 'a.invalid'));
  t.true(policy.mayLease(null, 'b.invalid'), 'of a destination that is not known, nothing is known to wait');
});

test('more leases than the limit leave no room, and never less than none', (t) => {
  const { policy } = policyFor(['a.invalid']);
  for (let n = 0; n < 4 * 500 + 3; n++) policy.countLeased(1);
  t.is(policy.freeLeases(), 0);
  t.deepEqual(policy.pickBacklogs(policy.freeLeases()).claims, []);
});

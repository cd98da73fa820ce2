/** What destinations with waiting mail cost a node, in memory and in time, by the real queue: prints the figures of each count. */
import { setImmediate as turn } from 'node:timers/promises';
import { manualClock } from '#lab/clock.ts';
import { LeasePolicy, maxPerClaim } from '#mail/queue/lease-policy.ts';
import { ReadyQueues } from '#mail/queue/ready-queues.ts';
import { createDestinationPublisher } from '#mail/record/destination-publisher.ts';
import { defaultShape } from '#platform/settings/shaping-rules.ts';

export interface DestinationFigures {
  destinations: number;
  /** Of memory, for each. */
  bytes: number;
  /** To choose the backlogs of a claim; and if nothing can start at any of the destinations. */
  claimMs: number;
  blockedClaimMs: number;
  /** What a poll looks at each second. */
  pollMs: number;
  /** States that are written in a minute while all mail waits for its turn, and while nothing answers anywhere. */
  statesSaved: { waiting: number; dead: number };
}

const shape = defaultShape(20);
const repeats = 20;

async function measure(destinations: number): Promise<DestinationFigures> {
  const clock = manualClock();
  let statesSaved = 0;
  const publisher = createDestinationPublisher({
    saveStates: async (states) => {
      statesSaved += states.size;
    },
    saveRoutes: async () => {},
    sockets: () => 0,
    keepMs: 60_000,
    repeatMs: 20_000,
  });
  const before = await memory();
  const readyQueues = new ReadyQueues({
    destinationOf: (name) => ({ name: `mx.${name}`, shape }),
    resolve: async (name) => ({ name: `mx.${name}`, shape }),
    onWaiting: publisher.route,
    notifyOthers: () => {},
    ownership: { isOurs: () => true },
    requestClaim: () => {},
    stopping: new AbortController().signal,
    clock,
  });
  const policy = new LeasePolicy(readyQueues, clock, 500);
  for (let number = 0; number < destinations; number++)
    readyQueues.note({ domain: `domain${number}.example`, orgId: 'one organization' });
  const claimMs = await timed(() => policy.pickBacklogs(maxPerClaim));
  const poll = async () => {
    readyQueues.refreshShapes();
    await publisher.publish([...readyQueues.all()], clock.now());
    readyQueues.mergePeerStates();
    readyQueues.forgetIdle();
    readyQueues.hasWork();
    readyQueues.wakeAt(clock.now());
  };
  const minute = async () => {
    statesSaved = 0;
    for (let third = 0; third < 3; third++) {
      await clock.advance('20s');
      await poll();
    }
    return statesSaved;
  };
  const waiting = await minute();
  const bytes = ((await memory()) - before) / destinations;
  for (const readyQueue of readyQueues.all())
    for (let failures = 0; failures < 5; failures++) {
      readyQueue.attemptStarted(clock.now());
      readyQueue.attemptFinished('dead', 'connection refused', clock.now());
    }
  const blockedClaimMs = await timed(() => policy.pickBacklogs(maxPerClaim));
  const dead = await minute();
  const pollMs = await timed(poll);
  return { destinations, bytes, claimMs, blockedClaimMs, pollMs, statesSaved: { waiting, dead } };
}

async function memory(): Promise<number> {
  for (let times = 0; times < 3; times++) {
    gc!();
    await turn();
  }
  return process.memoryUsage().heapUsed;
}

async function timed(run: () => unknown): Promise<number> {
  const begun = performance.now();
  for (let number = 0; number < repeats; number++) await run();
  return (performance.now() - begun) / repeats;
}

for (const destinations of JSON.parse(process.argv[2]!) as number[])
  console.log(JSON.stringify(await measure(destinations)));

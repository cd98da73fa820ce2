/**
 * Nodes of which there is nothing but what they ask of PostgreSQL, by the program's own functions: to claim and record, to
 * poll at rest, to ring and hear the bell.
 */
import { v7 as uuid } from 'uuid';
import { createNotify } from '../../src/cluster/notify.ts';
import { acceptAll } from '../../src/db/accept/acceptance.ts';
import type { Db } from '../../src/db/engine/open.ts';
import { settledPosition } from '../../src/db/events/read-events.ts';
import { claimBacklogs, claimExpired, findDue } from '../../src/db/queue/lease-statements.ts';
import { recordAll } from '../../src/db/queue/outcomes.ts';
import { listSuspensions } from '../../src/db/queue/suspensions.ts';
import { listDueWebhooks } from '../../src/db/webhooks/webhook-outbox.ts';
import { hasActiveWebhooks } from '../../src/db/webhooks/webhooks.ts';
import { until } from '../../test/helpers/until.ts';
import { deliveredMove, sendOf } from './floor-books.ts';
import type { Costs } from './postgres-costs.ts';

interface Lane {
  domain: string;
  orgId: string;
}

const domains = 50;
const batch = 100;
const message = Buffer.alloc(4096, 'All of this is an ordinary line of a mail.\r\n');
const leaseMs = 180_000;

/** Mails that wait, due, in turn in each lane. */
export async function fillLanes(db: Db, mails: number): Promise<Lane[]> {
  const { id: keyId, org_id: orgId } = await db('api_keys').first('id', 'org_id');
  for (let done = 0; done < mails; done += batch) {
    const sends = Array.from({ length: Math.min(batch, mails - done) }, (_, index) =>
      sendOf(orgId, keyId, message, { domain: `there${index % domains}.invalid`, entry: 'due' }),
    );
    await acceptAll(db, sends, { keepMs: 86_400_000, lowShare: 0.1 });
  }
  return Array.from({ length: domains }, (_, index) => ({ domain: `there${index}.invalid`, orgId }));
}

/** Until so many are recorded by all of these; milliseconds of each claim. */
export async function claimAll(dbs: Db[], lanes: Lane[], mails: number): Promise<number[]> {
  const times: number[] = [];
  let recorded = 0;
  await Promise.all(
    dbs.map(async (db, index) => {
      const node = `node${index}`;
      for (let turn = index; recorded < mails; turn++) {
        // Ten lanes, five of each, as a node with some destinations under way asks for.
        const picks = Array.from({ length: 10 }, (_, n) => lanes[(turn * 7 + n * 5) % lanes.length]!);
        const begun = performance.now();
        const terms = { node, now: Date.now(), leaseMs };
        const claimed = await claimBacklogs(
          db,
          picks.map((pick) => ({ ...pick, limit: 5 })),
          terms,
        );
        times.push(performance.now() - begun);
        if (claimed.length === 0) continue;
        const written = await recordAll(db, node, claimed.map(deliveredMove), []);
        recorded += written.filter(Boolean).length;
      }
    }),
  );
  return times;
}

/** What a node with all roles asks once a second while nothing happens. */
export async function poll(db: Db): Promise<void> {
  const now = Date.now();
  await listSuspensions(db, now);
  await findDue(db, { after: now - 3000, now, max: 10_000 });
  await claimExpired(db, 200, { node: 'none', now, leaseMs });
  await settledPosition(db);
  await hasActiveWebhooks(db);
  await listDueWebhooks(db, now);
}

type Costing = <T>(work: () => Promise<T>) => Promise<[T, Costs, number]>;

/** Every node has something to say all the time, and says it as often as it may. */
export async function ringAll(databaseUrl: string, nodes: number, seconds: number, costing: Costing) {
  const count = { heard: 0, ready: 0 };
  const heard = {
    lane() {},
    events() {
      count.heard += 1;
    },
    anything() {
      count.ready += 1;
    },
  };
  const onError = (_: string, error: unknown) => {
    throw error;
  };
  const bells = Array.from({ length: nodes }, () =>
    createNotify({ databaseUrl, node: uuid(), sends: true, onError }),
  );
  try {
    for (const bell of bells) bell.listen(heard);
    await until(() => count.ready === nodes, { timeout: 60_000, what: 'all to listen' });
    const over = performance.now() + seconds * 1000;
    const before = count.heard;
    const [, costs, took] = await costing(async () => {
      while (performance.now() < over) {
        for (const bell of bells) bell.events();
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    });
    const perSecond = (count.heard - before) / took;
    return { rung: perSecond / Math.max(1, nodes - 1), heard: perSecond, cores: costs.cpuSeconds / took };
  } finally {
    await Promise.all(bells.map((bell) => bell.close()));
  }
}

/**
 * Item 11: one organization schedules very many mails for one time. Before and while they are due, the mail of others leaves as
 * ever, the pages of the queue are shown at once, and so is the organization's own list.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { callJson } from '#lab/ask.ts';
import { quantile } from '#lab/load/figures.ts';
import { until } from '#lab/until.ts';
import { type Attack, type Verdict, verdict } from './attack.ts';
import { orgIdOf, type Scene } from './scene.ts';

const count = Number(process.env.ATTACK_SCHEDULED ?? 20_000);
const batchLength = 100;
const atOnce = 4;
/** From the last batch until they are due. */
const aheadMs = 10_000;
const watchedMs = 10_000;

const maxPageMs = 1_000;
/** From the send to the exchanger's 250. */
const maxLatencyMs = 1_000;

async function schedule({ url }: Scene, key: string, at: number): Promise<void> {
  const scheduledAt = new Date(at).toISOString();
  let made = 0;
  const one = () => ({
    from: 'a@sender.invalid',
    to: `n${made++}@there.invalid`,
    subject: 'x',
    text: 'x',
    scheduledAt,
  });
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (made < count) {
        const body = Array.from({ length: batchLength }, one);
        const { status, text } = await callJson(`${url}/api/public/email/batch`, key, 'POST', body);
        if (status !== 200) throw new Error(`a batch was answered ${status} ${text.slice(0, 200)}`);
      }
    }),
  );
}

/** The slowest of the pages of the queue and of the lists of this organization. */
async function slowestPage(scene: Scene, key: string): Promise<{ ms: number; what: string }> {
  const browser = await scene.operator();
  const orgId = await orgIdOf(scene.db, key);
  const pages = ['/dashboard/queue', '/dashboard', `/dashboard/o/${orgId}`, `/dashboard/o/${orgId}/emails`];
  const calls = ['emails?limit=100', 'emails?status=scheduled&limit=100', 'events?limit=100'];
  const times: { ms: number; what: string }[] = [];
  const timed = async (what: string, ask: () => Promise<{ status: number }>) => {
    const begun = performance.now();
    const { status } = await ask();
    times.push({
      ms: Math.round(performance.now() - begun),
      what: status === 200 ? what : `${what}: ${status}`,
    });
  };
  for (const page of pages) await timed(page, () => browser.ask('GET', page));
  for (const call of calls) await timed(call, () => callJson(`${scene.url}/api/public/${call}`, key, 'GET'));
  return times.reduce((most, one) => (one.ms > most.ms ? one : most));
}

/** How long the mails of others took to be delivered that were accepted in this time. */
async function latencies({ db }: Scene, orgId: string, from: number, to: number): Promise<number[]> {
  const rows = () =>
    db('deliveries')
      .whereNot({ org_id: orgId })
      .whereBetween('created_at', [from, to])
      .select('created_at', 'delivered_at');
  const all = await until(async () => {
    const read = await rows();
    return read.every(({ delivered_at: at }) => at !== null) && read;
  });
  return all.map((row) => row.delivered_at - row.created_at);
}

async function scheduleMany(scene: Scene): Promise<Verdict> {
  const key = await scene.addTenant();
  const orgId = await orgIdOf(scene.db, key);
  const begun = Date.now();
  // Nobody knows how long it takes; they are moved to the time when all are there.
  await schedule(scene, key, begun + 3_600_000);
  const madeMs = Date.now() - begun;
  const waiting = await slowestPage(scene, key);
  const dueAt = Date.now() + aheadMs;
  await scene.db('deliveries').where({ org_id: orgId }).update({ due_at: dueAt });
  await sleep(dueAt - Date.now());
  const [due] = await Promise.all([slowestPage(scene, key), sleep(watchedMs)]);
  const p95 = quantile(await latencies(scene, orgId, dueAt, dueAt + watchedMs), 0.95);
  const left = (await scene.db('deliveries').where({ org_id: orgId }).whereNull('delivered_at').select('id'))
    .length;
  return verdict(
    `${count} in ${Math.round(madeMs / 1000)} s; slowest page ${waiting.ms} ms (${waiting.what}), while they are due ${due.ms} ms (${due.what}); others delivered after ${p95} ms (p95); ${left} left`,
    [waiting.ms <= maxPageMs, `${waiting.what} took ${waiting.ms} ms`],
    [due.ms <= maxPageMs, `${due.what} took ${due.ms} ms while they were due`],
    [p95 <= maxLatencyMs, `the mail of others was delivered after ${p95} ms (p95)`],
  );
}

export const longQueue: Attack[] = [
  {
    item: 11,
    name: `${count} mails of one organization, due at one time`,
    timeoutMs: 10 * 60_000,
    run: scheduleMany,
  },
];

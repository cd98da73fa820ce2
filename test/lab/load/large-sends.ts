/**
 * The third part of scripts/isolation.ts: whether an organization's small sends wait for another's large sends. Six sends of
 * 1.9 MB with 55,000 links each, with click tracking, for ten recipients, arrive at once. The other organization sends small
 * mails until all copies of the large ones have been delivered.
 */
import http from 'node:http';
import Table from 'cli-table3';
import { databaseInfo } from '#platform/database/admin/server-info.ts';
import { startDns } from '../dns/dns.ts';
import { startSink } from '../mx/sink.ts';
import { launchPostern } from '../scenes/postern.ts';
import { median, ms, progress, quantile } from './figures.ts';
import { recipients, type Sent, sendAll } from './load.ts';
import type { Stage } from './stage.ts';

const hosts = { small: '127.0.0.2', large: '127.0.0.3' };
const largeSends = 6;
const copies = 10;
const intervalMs = 25;
const idleMails = 200;
/** Concurrent small mails: an organization may use at most half of the slots for sends. */
const maxUnanswered = 20;
const timeoutMs = 300_000;
/** A p95 below this is noise: a garbage collection, or another program. */
const noiseMs = 25;
/** Bytes that may be stored for a send to all recipients, for each byte of its HTML. */
const maxStored = 3;

const html = Array.from(
  { length: 55_000 },
  (_, n) => `<a href="http://a.invalid/${String(n).padStart(5, '0')}">x</a>`,
).join('');

export interface LargeSends {
  /** From the call to the 200, and to the MX host. */
  idle: { answered: number[]; arrived: number[] };
  beside: { answered: number[]; arrived: number[] };
  /** Until all large sends were answered, and until all their copies were delivered. */
  largeAnsweredMs: number;
  largeDeliveredMs: number;
  /** How much the database has grown by each large send. */
  storedBytes: number;
  rssMb: number;
}

export async function measureLargeSends(stage: Stage, settings: Record<string, string>): Promise<LargeSends> {
  const sink = await stage.start(startSink([{ host: hosts.small }, { host: hosts.large }]), (it) =>
    it.stop(),
  );
  const zone = {
    'small.invalid': { MX: ['10 mx.small.invalid'] },
    'mx.small.invalid': { A: [hosts.small] },
    'large.invalid': { MX: ['10 mx.large.invalid'] },
    'mx.large.invalid': { A: [hosts.large] },
  };
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const postern = await launchPostern(stage, { dns, mtaPort: sink.port, settings });
  const load = { url: postern.url, interrupted: stage.interrupted, key: await postern.addTenant() };

  await sendAll({ ...load, to: recipients('small.invalid', 300, 'warm') });
  const idle = await sendAll({ ...load, to: recipients('small.invalid', idleMails, 'idle'), intervalMs });
  progress(`large sends: alone p95 ${ms(quantile(idle.map(took), 0.95))}; now ${largeSends} large ones`);

  const before = (await databaseInfo(postern.db)).bytes;
  const begun = performance.now();
  let [largeAnsweredMs, largeDeliveredMs] = [0, 0];
  const attack = Array.from({ length: largeSends }, (_, n) => sendLarge(postern, n, stage.interrupted));
  const attacked = Promise.all(attack).then(async () => {
    largeAnsweredMs = performance.now() - begun;
    while ((await sink.count(hosts.large)) < largeSends * copies) {
      if (performance.now() - begun > timeoutMs) throw new Error('the large mails were not all delivered');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    largeDeliveredMs = performance.now() - begun;
  });
  const beside: Promise<Sent[]>[] = [];
  let unanswered = 0;
  const timer = setInterval(() => {
    if (unanswered >= maxUnanswered) return;
    unanswered += 1;
    const one = sendAll({ ...load, to: [`beside-${beside.length}@small.invalid`] });
    beside.push(one.finally(() => (unanswered -= 1)));
  }, intervalMs);
  await attacked.finally(() => clearInterval(timer));
  const sent = (await Promise.all(beside)).flat();
  const growth = (await databaseInfo(postern.db)).bytes - before;

  while ((await sink.count(hosts.small)) < 300 + idle.length + sent.length) {
    if (performance.now() - begun > timeoutMs) throw new Error('the small mails were not all delivered');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const arrivals = new Map((await sink.records()).map(({ to, at }) => [to, at]));
  const figures = (list: Sent[]) => ({
    answered: list.map(took),
    arrived: list.map(({ to, calledAt }) => arrivals.get(to)! - calledAt),
  });
  return {
    idle: figures(idle),
    beside: figures(sent),
    largeAnsweredMs,
    largeDeliveredMs,
    storedBytes: Math.round(growth / largeSends),
    rssMb: await postern.rssMb(),
  };
}

const took = ({ calledAt, answeredAt }: Sent) => answeredAt - calledAt;

function sendLarge(
  { url, key }: { url: string; key: string },
  n: number,
  signal: AbortSignal,
): Promise<void> {
  const to = recipients('large.invalid', copies, `large-${n}`);
  const mail = { from: 'Shop <shop@sender.invalid>', to, subject: `Large ${n}`, html };
  const body = JSON.stringify({ ...mail, tracking: { clickTracking: true } });
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const request = http.request(
      `${url}/api/public/email/send`,
      { method: 'POST', headers, signal },
      (answer) => {
        answer.resume().on('error', reject);
        if (answer.statusCode === 200) answer.on('end', resolve);
        else reject(new Error(`a large send was answered ${answer.statusCode}`));
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** The p95 during the large sends must be at most twice that without, and a send must be stored about once. */
export function judgeLargeSends(measured: LargeSends) {
  const { idle, beside, storedBytes, rssMb } = measured;
  const table = new Table({
    head: ["another organization's small sends", 'mails', 'call to 200: median', 'p95', 'call to MX: p95'],
    style: { head: [], border: [] },
  });
  const p95 = (list: number[]) => quantile(list, 0.95);
  for (const [name, { answered, arrived }] of [
    ['alone', idle],
    [`beside ${largeSends} large sends`, beside],
  ] as const)
    table.push([name, answered.length, ms(median(answered)), ms(p95(answered)), ms(p95(arrived))]);
  const max = 2 * Math.max(p95(idle.answered), noiseMs);
  const faults: string[] = [];
  if (!(p95(beside.answered) <= max))
    faults.push(`large sends: another's p95 is ${ms(p95(beside.answered))}, where ${ms(max)} is allowed`);
  if (storedBytes > maxStored * html.length)
    faults.push(`large sends: each has added ${megabytes(storedBytes)} to the database`);
  const figures = [
    {
      idleP95: p95(idle.answered),
      besideP95: p95(beside.answered),
      idleArrivalP95: p95(idle.arrived),
      besideArrivalP95: p95(beside.arrived),
      largeAnsweredMs: measured.largeAnsweredMs,
      largeDeliveredMs: measured.largeDeliveredMs,
      storedBytes,
      rssMb,
    },
  ];
  const sentence =
    `The large sends were answered within ${ms(measured.largeAnsweredMs)}, delivered within ` +
    `${ms(measured.largeDeliveredMs)}, and each has added ${megabytes(storedBytes)} to the database. RSS ${rssMb} MB`;
  return { table: `${table}\n${sentence}`, figures, faults };
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

/**
 * The second part of scripts/isolation.ts: whether one organization's mail waits for another's backlog at the same destination,
 * which takes 50 ms for each mail over at most five connections. The other organization sends single mails, each after the
 * previous one has arrived.
 */
import Table from 'cli-table3';
import { startDns } from '../dns/dns.ts';
import { startSink } from '../mx/sink.ts';
import { launchPostern } from '../scenes/postern.ts';
import { until } from '../until.ts';
import { median, ms, progress } from './figures.ts';
import { recipients, sendAll } from './load.ts';
import type { Stage } from './stage.ts';

const host = '127.0.0.2';
const timeoutMs = 300_000;

export interface FairnessOptions {
  backlog: number;
  /** Number of single mails before the backlog, and during it. */
  probes: number;
  /** Postern settings. */
  settings: Record<string, string>;
}

export interface Fairness {
  alone: number[];
  /** During the backlog: the mail's time, the number of waiting mails, and how long these still took. */
  beside: { took: number; waiting: number; toGo: number }[];
  rssMb: number;
}

export async function measureFairness(
  stage: Stage,
  { backlog, probes: probeCount, settings }: FairnessOptions,
): Promise<Fairness> {
  const slow = { 'slow.invalid': { MX: ['10 mx.invalid'] }, 'mx.invalid': { A: [host] } };
  const sink = await stage.start(startSink([{ host, delayMs: 50 }]), (it) => it.stop());
  const dns = await stage.start(startDns(slow), (it) => it.close());
  const postern = await launchPostern(stage, {
    dns,
    mtaPort: sink.port,
    settings: { POSTERN_MTA_PER_DESTINATION: '5', ...settings },
  });
  const [big, small] = [postern.key, await postern.addTenant()];
  const load = { url: postern.url, interrupted: stage.interrupted };
  const probes = recipients('slow.invalid', probeCount, 'small');
  const probe = async (to: string) => {
    const [sent] = await sendAll({ ...load, key: small, to: [to] });
    const options = { timeout: timeoutMs, what: `the mail to ${to}` };
    return { calledAt: sent!.calledAt, at: await until(() => sink.arrival(to), options) };
  };

  const alone: number[] = [];
  for (const to of probes) {
    const { calledAt, at } = await probe(`alone-${to}`);
    alone.push(at - calledAt);
  }
  progress(`fairness: alone ${ms(median(alone))}; now a backlog of ${backlog}`);
  await sendAll({ ...load, key: big, to: recipients('slow.invalid', backlog, 'big') });
  const found: { calledAt: number; at: number }[] = [];
  for (const to of probes) found.push(await probe(to));
  progress(`fairness: ${found.map(({ calledAt, at }) => ms(at - calledAt)).join(', ')}`);
  const total = backlog + 2 * probes.length;
  await until(async () => (await sink.count(host)) === total, {
    timeout: timeoutMs,
    what: 'the end of the backlog',
  });
  const accepted = await sink.records();
  const others = accepted.filter(({ to }) => to.startsWith('big-')).map(({ at }) => at);
  const end = Math.max(...others);
  const beside = found.map(({ calledAt, at }) => ({
    took: at - calledAt,
    waiting: others.filter((other) => other > calledAt).length,
    toGo: end - calledAt,
  }));
  return { alone, beside, rssMb: await postern.rssMb() };
}

/** The slowest single mail must take less than a tenth of the time that the backlog still needed. */
export function judgeFairness({ alone, beside, rssMb }: Fairness) {
  const table = new Table({
    head: ['another organization waits with', 'mail to MX', 'the backlog takes'],
    style: { head: [], border: [] },
  });
  table.push(['nothing', ms(median(alone)), '-']);
  // After the end of the backlog a mail proves nothing.
  const besides = beside.filter(({ waiting }, index) => waiting > 0 || index === 0);
  for (const { took, waiting, toGo } of besides) table.push([`${waiting} mails`, ms(took), ms(toGo)]);
  const slowest = Math.max(...besides.map(({ took }) => took));
  const toGo = besides[0]!.toGo;
  const faults =
    slowest < toGo / 10
      ? []
      : [`fairness: a mail took ${ms(slowest)}, where another's backlog had ${ms(toGo)} to go`];
  const figures = [{ alone: median(alone), slowest, toGo, rssMb }];
  return { table: `${table}\nRSS ${rssMb} MB`, figures, faults };
}

/**
 * `node scripts/flood.ts [--rate 500] [--connections 40] [--seconds 10] [--rounds 2] [--limited] [--json]`: sends so many mails a
 * second from another process to one organization's route, while a bounce and a mail to another organization's route come in every
 * 100 ms. The p95 of both, from the connection to the reply after the message, must stay within twice that without the flood.
 * Without --limited the flooded organization may receive as much as comes. Linux, on a quiet machine. Exits 0 if so, 1 if not.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createTransport } from 'nodemailer';
import { startDns } from '#lab/dns/dns.ts';
import { conclude } from '#lab/load/conclude.ts';
import { median, ms, progress, quantile, tableOf } from '#lab/load/figures.ts';
import { freePort } from '#lab/load/ports.ts';
import { readOptions, runScript, type Stage } from '#lab/load/stage.ts';
import { startSink } from '#lab/mx/sink.ts';
import { launchPostern, type Postern } from '#lab/scenes/postern.ts';
import { goldenMail } from '#lab/scenes/returns.ts';
import { testConfig } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { createReturnPath } from '#mail/returned/return-path.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import { startReceivingAt } from './attacks/scene.ts';
import { type Flooded, startFlood } from './flood/flooder.ts';

const usage = 'node scripts/flood.ts [--rate N] [--connections N] … (see its header)';
const args = readOptions(usage, {
  rate: { type: 'string', default: '500' },
  connections: { type: 'string', default: '40' },
  seconds: { type: 'string', default: '10' },
  rounds: { type: 'string', default: '2' },
  limited: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
});
const [perSecond, connections, seconds, rounds] = [
  args.rate,
  args.connections,
  args.seconds,
  args.rounds,
].map(Number) as [number, number, number, number];

const host = '127.0.0.2';
const zone = { 'there.invalid': { MX: ['10 mx.invalid'] }, 'mx.invalid': { A: [host] } };
const probeIntervalMs = 100;
const probesAtOnce = seconds * (1000 / probeIntervalMs);

interface World {
  postern: Postern;
  port: number;
  /** Emails that were delivered, each for one bounce. */
  delivered: { path: string; recipient: string }[];
}

async function setUp(stage: Stage): Promise<World> {
  const sink = await stage.start(startSink([{ host }]), (it) => it.stop());
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const port = await freePort('127.0.0.1');
  const settings = {
    POSTERN_INBOUND_PORT: String(port),
    POSTERN_RECEIVED_STORE: '10G',
    ...(!args.limited && { POSTERN_RECEIVED_PER_MINUTE: '1000000' }),
  };
  const postern = await launchPostern(stage, { dns, mtaPort: sink.port, settings });
  const { db, dataDir } = postern;
  const calm = await postern.addTenant();
  await startReceivingAt(db, 'flood.invalid', postern.key);
  await startReceivingAt(db, 'calm.invalid', calm);
  const config = testConfig({ dataDir, databaseUrl: null, dns, mtaPort: sink.port }, settings);
  const pathOf = createReturnPath(loadSecrets(config), config.returnPathDomain);
  const count = 2 * rounds * probesAtOnce + 20;
  progress(`${count} emails are sent, so that they can bounce`);
  for (let n = 0; n < count; n += 1)
    await postern.send({ to: `ann${n}@there.invalid`, subject: 'x', text: 'x' });
  await until(async () => (await sink.count(host)) === count, { timeout: 60_000, what: 'the emails' });
  await sleep(1000);
  const deliveries = await db('deliveries').select('id', 'recipient');
  return {
    postern,
    port,
    delivered: deliveries.map(({ id, recipient }) => ({ path: pathOf(id), recipient })),
  };
}

/** The time of one mail, from the connection to the reply after the message; null if it was not taken. */
async function timeOf(
  port: number,
  to: string,
  message: Buffer | string,
  probe: number,
): Promise<number | null> {
  const begun = performance.now();
  const localAddress = `127.2.${probe % 250}.1`;
  const transport = createTransport({ host: '127.0.0.1', port, localAddress, ignoreTLS: true });
  try {
    await transport.sendMail({ envelope: { from: '', to }, raw: message });
    return performance.now() - begun;
  } catch (error) {
    progress(`a mail beside the flood was not taken: ${(error as Error).message}`);
    return null;
  } finally {
    transport.close();
  }
}

const letter = 'From: bob@there.invalid\r\nTo: orders@calm.invalid\r\nSubject: Question\r\n\r\nGood morning';

interface Times {
  bounces: number[];
  others: number[];
  lost: number;
}

/** A bounce and a mail to the other organization at a time, whether the ones before are answered or not. */
async function probe({ port, delivered }: World, count = probesAtOnce): Promise<Times> {
  const running: Promise<[number | null, number | null]>[] = [];
  for (let n = 0; n < count; n += 1) {
    const { path, recipient } = delivered.pop()!;
    running.push(
      Promise.all([
        timeOf(port, path, goldenMail('qmail-remote', path, recipient), n),
        timeOf(port, 'orders@calm.invalid', letter, n + 100),
      ]),
    );
    await sleep(probeIntervalMs);
  }
  const all = await Promise.all(running);
  const took = (which: 0 | 1) => all.flatMap((times) => times[which] ?? []);
  const [bounces, others] = [took(0), took(1)];
  return { bounces, others, lost: 2 * all.length - bounces.length - others.length };
}

interface Row {
  what: string;
  idle: number[];
  flooded: number[];
}

const rows: Row[] = [
  { what: 'bounces', idle: [], flooded: [] },
  { what: "another organization's route", idle: [], flooded: [] },
];
const floods: Flooded[] = [];
const ratioOf = ({ idle, flooded }: Row) => quantile(flooded, 0.95) / quantile(idle, 0.95);

async function measure(stage: Stage): Promise<string[]> {
  const world = await setUp(stage);
  await probe(world, 20);
  let lost = 0;
  const note = (times: Times, when: 'idle' | 'flooded') => {
    rows[0]![when].push(...times.bounces);
    rows[1]![when].push(...times.others);
    lost += times.lost;
  };
  for (let round = 1; round <= rounds; round += 1) {
    progress(`round ${round} of ${rounds}`);
    note(await probe(world), 'idle');
    const flood = await startFlood({ port: world.port, to: 'orders@flood.invalid', perSecond, connections });
    await sleep(1000);
    note(await probe(world), 'flooded');
    floods.push(await flood.stop());
    await sleep(2000);
  }
  const slow = rows.filter((row) => !(ratioOf(row) <= 2));
  return [
    ...slow.map((row) => `${row.what}: the p95 is ${ratioOf(row).toFixed(2)} times that without the flood`),
    ...(lost > 0 ? [`${lost} of the mails beside it were not taken`] : []),
  ];
}

function print(): void {
  const cells = (times: number[]) => [ms(median(times)), ms(quantile(times, 0.95))];
  const head = ['mail', 'idle: median', 'p95', 'flooded: median', 'p95', 'p95 ratio'];
  console.log(
    tableOf(
      head,
      rows.map((row) => [row.what, ...cells(row.idle), ...cells(row.flooded), ratioOf(row).toFixed(2)]),
    ),
  );
  for (const { seconds: took, replies } of floods) {
    const rates = Object.entries(replies).map(([reply, count]) => `${reply}: ${Math.round(count / took)}`);
    console.log(`the flood's replies a second: ${rates.join(', ')}`);
  }
}

const faults = await runScript('flood', measure);
conclude({ faults, json: args.json && { rows, floods }, print });

/**
 * `node scripts/tls-hosts.ts`: gives one mail to each of some forty kinds of TLS hosts, sound, old and broken, and prints which
 * came over TLS, which in clear, and which did not come. If they are there, Postfix and Exim do the same with their usual,
 * opportunistic TLS. Exits 0 if every kind ends as it must, no mail waits here that they deliver, and none goes in clear that
 * they encrypt; else 1. The others are left out without root or without their programs; to have both, install one and unpack
 * the other, with its libraries:
 *
 *   apt-get install -y --no-install-recommends postfix
 *   apt-get download exim4-daemon-light exim4-base libidn12; for p in *.deb; do dpkg -x $p unpacked; done
 *   node scripts/tls-hosts.ts --packages unpacked [--only postern|postfix|exim]… [--wait 60] [--json]
 *
 * `--wait`: seconds after which a mail that has not come counts as stranded.
 */
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startDns, type Zone } from '#lab/dns/dns.ts';
import { conclude } from '#lab/load/conclude.ts';
import { progress, tableOf } from '#lab/load/figures.ts';
import { freePort } from '#lab/load/ports.ts';
import { readOptions, runScript, type Stage } from '#lab/load/stage.ts';
import { type Mx, startMxs } from '#lab/mx/mx.ts';
import { tlsHosts } from '#lab/mx/tls-hosts.ts';
import { eximProgram } from '#lab/programs/exim.ts';
import { locate } from '#lab/programs/jail.ts';
import {
  type Sender,
  type SenderOptions,
  startSendingExim,
  startSendingPostfix,
  submitAll,
} from '#lab/programs/senders.ts';
import { startPostern } from '#lab/scenes/postern.ts';
import { until } from '#lab/until.ts';

const args = readOptions('node scripts/tls-hosts.ts [--only NAME]… [--packages DIR] [--wait S] [--json]', {
  only: { type: 'string', multiple: true, default: [] },
  packages: { type: 'string' },
  wait: { type: 'string', default: '60' },
  json: { type: 'boolean', default: false },
});
const packages = args.packages && resolve(args.packages);

type Result = 'encrypted' | 'clear' | 'stranded';
type SenderName = 'postern' | 'postfix' | 'exim';

interface Rival {
  name: SenderName;
  program: string;
  address: string;
  start(options: SenderOptions): Promise<Sender>;
}

const rivals: Rival[] = [
  { name: 'postfix', program: '/usr/sbin/postfix', address: '127.0.0.2', start: startSendingPostfix },
  { name: 'exim', program: eximProgram, address: '127.0.0.3', start: startSendingExim },
];

const isWanted = (name: SenderName) => args.only.length === 0 || args.only.includes(name);

function obstacle({ program }: Rival): string | null {
  if (process.getuid?.() !== 0) return 'only root can start it';
  return locate(program, packages) ? null : `${program} is not there; see the header of this script`;
}

interface World {
  /** One for each kind of host, in their order. */
  mxs: Mx[];
  /** The host's address for each domain. */
  routes: Map<string, string>;
}

const domainOf = (index: number) => `k${index + 1}.invalid`;

async function setUp(stage: Stage): Promise<World> {
  const hosts = tlsHosts.map(({ mx }, index) => ({ ...mx, host: `127.0.1.${index + 1}` }));
  const mxs = await stage.start(startMxs(hosts), (all) => Promise.all(all.map((mx) => mx.close())));
  return { mxs, routes: new Map(mxs.map(({ host }, index) => [domainOf(index), host])) };
}

const recipientsOf = (name: SenderName, { routes }: World) =>
  [...routes.keys()].map((domain) => `${name}@${domain}`);

async function sendWithPostern(stage: Stage, world: World): Promise<void> {
  const zone: Zone = {};
  for (const [domain, address] of world.routes) {
    zone[domain] = { MX: [`10 mx.${domain}`] };
    zone[`mx.${domain}`] = { A: [address] };
  }
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const settings = { POSTERN_MTA_TIMEOUTS: 'ehlo=3s tls=3s' };
  const postern = await startPostern(stage, { dns, mtaPort: world.mxs[0]!.port, settings });
  for (const to of recipientsOf('postern', world))
    await postern.send({ to, subject: 'Hello', text: 'Hello' });
}

async function sendWith({ name, address: host, start }: Rival, stage: Stage, world: World): Promise<void> {
  const directory = join(stage.directory, name);
  await mkdir(directory);
  const pemFile = fileURLToPath(new URL('../test/fixtures/mx.pem', import.meta.url));
  const { routes, mxs } = world;
  const port = await freePort(host);
  const options = { directory, host, port, pemFile, packages, routes, mxPort: mxs[0]!.port };
  const sender = await stage.start(start(options), (it) => it.stop());
  progress(`${sender.version} at ${host}:${port}`);
  await submitAll(options, recipientsOf(name, world));
}

function resultOf(name: SenderName, index: number, { mxs }: World): Result {
  const to = `${name}@${domainOf(index)}`;
  const message = mxs[index]!.messages.find((one) => one.to.includes(to));
  if (!message) return 'stranded';
  return message.tls ? 'encrypted' : 'clear';
}

type Row = { what: string; expected: Result } & Partial<Record<SenderName, Result>>;

async function compare(stage: Stage): Promise<Row[]> {
  const world = await setUp(stage);
  const names: SenderName[] = [];
  const sendings: Promise<void>[] = [];
  if (isWanted('postern')) {
    names.push('postern');
    sendings.push(sendWithPostern(stage, world));
  }
  for (const rival of rivals.filter(({ name }) => isWanted(name))) {
    const why = obstacle(rival);
    if (why) progress(`without ${rival.name}: ${why}`);
    else {
      names.push(rival.name);
      sendings.push(sendWith(rival, stage, world));
    }
  }
  await Promise.all(sendings);
  const isThere = () =>
    names.every((name) => tlsHosts.every((_, index) => resultOf(name, index, world) !== 'stranded'));
  await until(isThere, { timeout: Number(args.wait) * 1000, what: 'all mails' }).catch(() => {});
  return tlsHosts.map(({ what, expected }, index) => ({
    what,
    expected,
    ...Object.fromEntries(names.map((name) => [name, resultOf(name, index, world)])),
  }));
}

const ranks: Result[] = ['stranded', 'clear', 'encrypted'];

function faultsOf({ what, expected, ...results }: Row): string[] {
  const { postern } = results;
  if (!postern) return [];
  const better = rivals.filter(({ name }) => {
    const theirs = results[name];
    return theirs !== undefined && ranks.indexOf(theirs) > ranks.indexOf(postern);
  });
  return [
    ...(postern === expected ? [] : [`${what}: ${postern}, must be ${expected}`]),
    ...better.map(({ name }) => `${what}: ${postern}, with ${name} it is ${results[name]}`),
  ];
}

function print(rows: Row[]): void {
  const names = (['postern', 'postfix', 'exim'] as const).filter((name) => rows[0]?.[name]);
  const sums = ranks.map((result) => [
    result,
    ...names.map((name) => rows.filter((row) => row[name] === result).length),
  ]);
  console.log(
    tableOf(
      ['host', ...names],
      [...rows.map((row) => [row.what, ...names.map((name) => row[name]!)]), ...sums],
    ),
  );
}

let rows: Row[] = [];
const faults = await runScript('tls-hosts', async (stage) => {
  rows = await compare(stage);
  return rows.flatMap(faultsOf);
});
conclude({ faults, json: args.json && { rows }, print: () => rows.length > 0 && print(rows) });

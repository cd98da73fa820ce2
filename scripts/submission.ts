/**
 * `node scripts/submission.ts`: submits mail with Debian's own clients, swaks and msmtp (apt-get install swaks msmtp): with
 * STARTTLS and TLS from the start, AUTH PLAIN and LOGIN, and mails that must be refused. Shows each reply, and whether the mail
 * arrived with the same text and a valid DKIM signature. Exits 0 if all is right, 1 if not, 2 if no client is installed; one
 * that is missing is skipped with a message.
 */

import PostalMime from 'postal-mime';
import { verifyDkim } from '#lab/dkim.ts';
import { type Dns, startDns } from '#lab/dns/dns.ts';
import { conclude } from '#lab/load/conclude.ts';
import { tableOf } from '#lab/load/figures.ts';
import { freePort } from '#lab/load/ports.ts';
import { runScript, type Stage } from '#lab/load/stage.ts';
import { type Mx, startMx } from '#lab/mx/mx.ts';
import { type ClientProgram, clients, type Job, missingClients } from '#lab/programs/smtp-clients.ts';
import { type Postern, startPostern } from '#lab/scenes/postern.ts';
import { until } from '#lab/until.ts';

interface World {
  dns: Dns;
  mx: Mx;
  postern: Postern;
  ports: { starttls: number; implicit: number };
}

const host = '127.0.0.1';

async function setUp(stage: Stage): Promise<World> {
  const mx = await stage.start(startMx({ host: '127.0.0.2' }), (it) => it.close());
  const zone = { 'there.invalid': { MX: ['10 mx1.invalid'] }, 'mx1.invalid': { A: [mx.host] } };
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const ports = { starttls: await freePort(host), implicit: await freePort(host) };
  const settings = {
    POSTERN_LOG_LEVEL: 'error',
    POSTERN_SUBMISSION_PORT: String(ports.starttls),
    POSTERN_SUBMISSION_TLS_PORT: String(ports.implicit),
  };
  const postern = await startPostern(stage, { dns, mtaPort: mx.port, settings });
  return { dns, mx, postern, ports };
}

const body = 'Good morning,\n.this line begins with a dot\nGrüße\n';

/** A message with the line ends of the system, as clients expect it. */
function messageFor(to: string, from: string): string {
  const fields = [
    ...[`From: Shop <${from}>`, `To: ${to}`, 'Subject: From a real client', 'X-Postern-Tag-client: real'],
    ...['MIME-Version: 1.0', 'Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: 8bit'],
  ];
  return `${fields.join('\n')}\n\n${body}`;
}

interface Row {
  cells: string[];
  faults: string[];
}

const ways = [
  { implicit: false, method: 'PLAIN' },
  { implicit: false, method: 'LOGIN' },
  { implicit: true, method: 'PLAIN' },
  { implicit: true, method: 'LOGIN' },
] as const;

type Way = (typeof ways)[number];

const wayName = ({ implicit, method }: Way) => `${implicit ? 'TLS' : 'STARTTLS'}, ${method}`;

function jobOf({ ports, postern }: World, way: Way, to: string, from = 'shop@sender.invalid'): Job {
  const port = way.implicit ? ports.implicit : ports.starttls;
  return { host, port, ...way, password: postern.key, from, to, message: messageFor(to, from) };
}

async function send(client: ClientProgram, way: Way, world: World): Promise<Row> {
  const to = `${client.name}-${wayName(way).replace(/\W+/g, '-')}@there.invalid`.toLowerCase();
  const { isAccepted, reply } = await client.run(jobOf(world, way, to));
  const name = `${client.name}, ${wayName(way)}`;
  if (!isAccepted) return { cells: [name, reply, 'no', '', ''], faults: [`${name}: not taken: ${reply}`] };
  const arrived = () => world.mx.messages.find((message) => message.to.includes(to));
  const { raw } = await until(arrived, { what: `mail for ${to}` });
  const [verdict] = await verifyDkim(raw, world.dns);
  // Eight-bit text is encoded before it is signed.
  const isSame = (await PostalMime.parse(raw)).text?.trimEnd() === body.trimEnd();
  const checks: [boolean, string][] = [
    [/^250 2\.6\.0 Accepted as /.test(reply), `was told ${reply}`],
    [verdict?.result === 'pass', `DKIM: ${verdict?.result} ${verdict?.comment}`],
    [isSame, 'the text is not the one that was sent'],
    [!/X-Postern-Tag/i.test(raw.toString('latin1')), 'the tag went out'],
  ];
  return {
    cells: [name, reply, 'yes', verdict?.result ?? 'none', isSame ? 'yes' : 'no'],
    faults: checks.filter(([holds]) => !holds).map(([, fault]) => `${name}: ${fault}`),
  };
}

/** Mails that must be refused, and the expected replies. */
const refusals: { name: string; alter(job: Job): Job; expected: RegExp }[] = [
  {
    name: 'a wrong password',
    alter: (job) => ({ ...job, password: 'em_not_a_key_not_a_key' }),
    expected: /535 5\.7\.8 UNAUTHORIZED: /,
  },
  {
    name: 'a domain that is not ours',
    alter: (job) => ({ ...job, message: job.message.replace('@sender.invalid', '@stranger.invalid') }),
    expected: /550 5\.7\.1 DOMAIN_NOT_FOUND: /,
  },
  {
    name: 'two senders',
    alter: (job) => ({ ...job, message: `From: other@sender.invalid\n${job.message}` }),
    expected: /554 5\.6\.0 BAD_REQUEST: from: /,
  },
  {
    name: 'a recipient that cannot be',
    alter: (job) => ({ ...job, to: 'nobody@localhost' }),
    expected: /553 5\.1\.3 /,
  },
];

async function refuse(
  client: ClientProgram,
  { name, alter, expected }: (typeof refusals)[number],
  world: World,
) {
  const { isAccepted, reply } = await client.run(alter(jobOf(world, ways[0], 'refused@there.invalid')));
  const what = `${client.name}, ${name}`;
  const holds = !isAccepted && expected.test(reply);
  return {
    cells: [what, reply, isAccepted ? 'yes' : 'no', '', ''],
    faults: holds ? [] : [`${what}: was told ${reply}`],
  };
}

async function play(stage: Stage): Promise<string[]> {
  const world = await setUp(stage);
  const rows: Row[] = [];
  const missing = missingClients();
  for (const client of clients.filter(({ name }) => !missing.includes(name))) {
    for (const way of ways) rows.push(await send(client, way, world));
    for (const one of refusals) rows.push(await refuse(client, one, world));
  }
  const head = ['client', 'was told', 'taken', 'DKIM', 'same text'];
  console.log(
    tableOf(
      head,
      rows.map(({ cells }) => cells),
      [32, 62, 7, 6, 7],
    ),
  );
  return rows.flatMap(({ faults }) => faults);
}

async function main(): Promise<void> {
  const missing = missingClients();
  if (missing.length > 0)
    console.error(`not installed, left out: ${missing.join(', ')} (apt-get install swaks msmtp)`);
  if (missing.length === clients.length) process.exit(2);
  conclude({ faults: await runScript('submission', play) });
}

await main();

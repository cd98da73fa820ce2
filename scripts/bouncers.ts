/**
 * `node scripts/bouncers.ts`: tests mail that a real Postfix, Exim and OpenSMTPD accept and return later, each in its own format.
 * The mail to an unknown user must become bounced (hard) and its address suppressed, the one to a full mailbox bounced (soft),
 * and the one that is accepted must stay delivered. Needs root. Exits 0 if so, 1 if not, 2 if a server cannot be run here.
 *
 *   --only NAME          postfix, exim or opensmtpd; may be repeated
 *   --packages DIR       directory of unpacked packages that are not installed (see scripts/receivers.ts)
 *   --json               print all results as JSON
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startDns, type Zone } from '#lab/dns/dns.ts';
import { conclude } from '#lab/load/conclude.ts';
import { progress, tableOf } from '#lab/load/figures.ts';
import { freePort } from '#lab/load/ports.ts';
import { endIf, runScript, type Stage } from '#lab/load/stage.ts';
import { type Mx, startMx } from '#lab/mx/mx.ts';
import {
  type Forwarder,
  startForwardingExim,
  startForwardingOpenSmtpd,
  startForwardingPostfix,
} from '#lab/programs/forwarders.ts';
import { obstacleTo } from '#lab/programs/jail.ts';
import { chosenServers, readServerOptions } from '#lab/programs/mail-servers.ts';
import { type Email, type Postern, startPostern } from '#lab/scenes/postern.ts';
import { until } from '#lab/until.ts';
import { listReturned } from '#mail/returned/rows/returned-mails.ts';

const { only, packages, json } = readServerOptions('scripts/bouncers.ts');
const kinds = chosenServers(
  { postfix: startForwardingPostfix, exim: startForwardingExim, opensmtpd: startForwardingOpenSmtpd },
  only,
);

/** Expected result by the local part of the recipient, which decides how the second host answers (test/lab/mx/mx-script.ts). */
const mails: Record<string, string> = {
  unknown: 'bounced hard unknown_user, suppressed',
  full: 'bounced soft mailbox_full',
  ann: 'delivered',
};

interface World {
  postern: Postern;
  behind: Mx;
  running: { kind: (typeof kinds)[number]; domain: string; forwarder: Forwarder }[];
}

async function setUp(stage: Stage): Promise<World> {
  const behind = await stage.start(startMx({ host: '127.0.0.9' }), (it) => it.close());
  const port = await freePort('127.0.0.2');
  const inboundPort = await freePort('127.0.0.1');
  const zone: Zone = {};
  const running: World['running'] = [];
  for (const [index, kind] of kinds.entries()) {
    const { name } = kind;
    const [domain, hostname, host] = [`${name}.invalid`, `mx.${name}.invalid`, `127.0.0.${index + 2}`];
    zone[domain] = { MX: [`10 ${hostname}`] };
    zone[hostname] = { A: [host] };
    const directory = join(stage.directory, name);
    await mkdir(directory);
    const pemFile = fileURLToPath(new URL('../test/fixtures/mx.pem', import.meta.url));
    const back = { domain: 'postern.invalid', host: '127.0.0.1', port: inboundPort };
    const options = { directory, host, port, hostname, domain, mailboxes: [], pemFile, packages };
    const starting = kind.start({ ...options, next: behind, back });
    const forwarder = await stage.start(starting, (it) => it.stop());
    progress(`${forwarder.version} at ${host}:${port}`);
    running.push({ kind, domain, forwarder });
  }
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const settings = { POSTERN_INBOUND_PORT: String(inboundPort) };
  return { postern: await startPostern(stage, { dns, mtaPort: port, settings }), behind, running };
}

interface Row {
  server: string;
  to: string;
  became: string;
  events: string[];
  format: string;
  diagnostic: string;
  seconds: number;
  faults: string[];
}

const timeoutMs = 60_000;

async function sendThere(
  local: string,
  { kind, domain, forwarder }: World['running'][number],
  { postern, behind }: World,
): Promise<Row> {
  const to = `${local}@${domain}`;
  const { emailId } = await postern.send({ to, subject: `To ${local}`, text: 'Hello' });
  const passing = ['queued', 'sending', 'deferred'];
  const first = await postern.after(passing, emailId, timeoutMs);
  const isTaken = mails[local] === 'delivered';
  const arrived = () => behind.messages.some((message) => message.to.includes(to));
  if (isTaken) await until(arrived, { timeout: timeoutMs, what: `the mail to ${to} behind its relay` });
  const email = isTaken ? first : await postern.after([...passing, 'delivered'], emailId, timeoutMs);
  const became = await describe(email, postern);
  const events = email.events.map(({ type }) => type.replace('email.', ''));
  const [kept] = await listReturned(postern.db, { emailId, limit: 10 });
  const expected = isTaken ? 'queued delivered' : 'queued delivered bounced';
  return {
    server: forwarder.version,
    to: local,
    became,
    events,
    format: String(kept?.reading.format ?? '-'),
    diagnostic: email.recipients[0]!.bounce?.diagnostic ?? '-',
    seconds: (Date.parse(email.updatedAt) - Date.parse(email.createdAt)) / 1000,
    faults: [
      ...(became === mails[local] ? [] : [`${kind.name}: ${to} is ${became}, not ${mails[local]}`]),
      ...(events.join(' ') === expected ? [] : [`${kind.name}: ${to} went ${events.join(', ')}`]),
      ...(isTaken || kept ? [] : [`${kind.name}: the bounce of ${to} is not kept`]),
    ],
  };
}

async function describe({ recipients: [one] }: Email, { db }: Postern): Promise<string> {
  const { status, bounce, address } = one!;
  const suppressed = await db('suppressions').where({ address }).first();
  const words = [status, ...(bounce ? [bounce.type, bounce.category] : [])].join(' ');
  return suppressed ? `${words}, suppressed` : words;
}

function print(rows: Row[]): void {
  const head = ['server', 'mail to', 'became', 'read as', 'reason given', 'time'];
  const shown = rows.map(({ server, to, became, format, diagnostic, seconds }) => {
    return [server, to, became, format, diagnostic, `${seconds.toFixed(1)} s`];
  });
  console.log(tableOf(head, shown, [null, null, null, null, 60]));
}

endIf(
  kinds.length === 0
    ? `${only.join(', ')}: no such server`
    : obstacleTo(
        kinds.map(({ program }) => program),
        packages,
      ),
);
const rows: Row[] = [];
const faults = await runScript('bouncers', async (stage) => {
  const world = await setUp(stage);
  const wrong: string[] = [];
  await Promise.all(
    world.running.map(async (running) => {
      const { kind, forwarder } = running;
      for (const local of Object.keys(mails)) {
        const row = await sendThere(local, running, world).catch((error) => `${kind.name}: ${error.message}`);
        if (typeof row === 'string') wrong.push(row);
        else rows.push(row);
      }
      progress(`${kind.name}: done`);
      wrong.push(...rows.filter(({ server }) => server === forwarder.version).flatMap((row) => row.faults));
      if (wrong.some((fault) => fault.startsWith(kind.name)))
        wrong.push(`the log of ${kind.name}:\n${await forwarder.log()}`);
    }),
  );
  return wrong;
});
rows.sort((a, b) => a.server.localeCompare(b.server));
conclude({ faults, json: json && { rows }, print: () => rows.length > 0 && print(rows) });

/**
 * `npm run demo [-- --json]`: shows Postern at work without a domain, public DNS or port 25. A DNS server, an MX host and
 * Postern run on loopback for a few seconds. Three mails enter through the HTTP API and end in three ways: delivered, delivered
 * after a deferral, bounced. Then the receiving side verifies the DKIM signatures. `--json` prints the complete responses of
 * GET. The clock is real; only the waits between attempts are shorter. Exits 0 if everything went as announced, 1 if not.
 */
import { styleText } from 'node:util';
import pino from 'pino';
import { verifyDkim } from '#lab/dkim.ts';
import { type Dns, startDns } from '#lab/dns/dns.ts';
import { readOptions, runScript, type Stage } from '#lab/load/stage.ts';
import { type Mx, startMx } from '#lab/mx/mx.ts';
import { type Email, type Postern, startPostern } from '#lab/scenes/postern.ts';
import type { Log } from '#platform/base/log.ts';

interface Scenario {
  to: string;
  subject: string;
  /** Announces what the reader is about to see. */
  title: string;
  /** Event types that the email must have, in order. */
  events: string[];
}

/** The local part decides how the MX host behaves: test/lab/mx/mx-script.ts. */
const scenarios: Scenario[] = [
  {
    to: 'ann@there.invalid',
    subject: 'Welcome',
    title: 'A mail that arrives.',
    events: ['email.queued', 'email.delivered'],
  },
  {
    to: 'greylist@there.invalid',
    subject: 'Your receipt',
    title: 'A server that says "not now" to strangers (greylisting). Postern keeps the mail and tries again.',
    events: ['email.queued', 'email.deferred', 'email.delivered'],
  },
  {
    to: 'unknown@there.invalid',
    subject: 'Your code is 4711',
    title: 'A mailbox that does not exist. Trying again would not help: the mail bounces at once.',
    events: ['email.queued', 'email.bounced'],
  },
];

const waits = '2s 4s';
const timeoutMs = 6_000;

interface World {
  dns: Dns;
  mx: Mx;
  postern: Postern;
}

async function setUp(stage: Stage): Promise<World> {
  const mx = await stage.start(startMx({ hostname: 'mx.invalid' }), (it) => it.close());
  const zone = { 'there.invalid': { MX: ['10 mx.invalid'] }, 'mx.invalid': { A: [mx.host] } };
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const surroundings = { dns, mtaPort: mx.port, settings: { POSTERN_MTA_RETRY: waits } };
  const postern = await startPostern(stage, surroundings, logToScreen());
  heading('Everything below runs on this machine; the names end in .invalid and no mail leaves it.');
  say('DNS', `${dns.address}, says that mail for there.invalid goes to mx.invalid`);
  say('mail server', `${mx.host}:${mx.port}, the mx.invalid of the recipients`);
  say('Postern', `${postern.url}, its data in ${postern.dataDir}`);
  say('', 'An organization, its API key, and its domain sender.invalid with a DKIM key in DNS: made.');
  say('', `After a deferral it waits ${waits.split(' ')[0]}, give or take; in production 30 s.`);
  return { dns, mx, postern };
}

/** Formats the mail log's lines, which main.ts writes to standard output, for a reader. */
function logToScreen(): Log {
  const verbs: Record<string, Parameters<typeof styleText>[0]> = {
    delivered: 'green',
    deferred: 'yellow',
    bounced: 'red',
  };
  const write = (line: string) => {
    const { time, msg, level, err } = JSON.parse(line);
    const verb = String(msg).split(' ', 1)[0]!;
    const text =
      level < pino.levels.values.warn!
        ? paint(verbs[verb] ?? 'cyan', verb) + msg.slice(verb.length)
        : `${paint('red', msg)} ${err?.message ?? ''}`;
    console.log(`  ${paint('dim', new Date(time).toISOString().slice(11, 23))} ${text}`);
  };
  return Object.assign(pino({ level: 'info', base: null }, { write }), { writeLines: null });
}

/** Follows one mail from POST to its final state. Returns what was not as announced. */
async function follow(
  scenario: Scenario,
  number: number,
  { postern }: World,
  json: boolean,
): Promise<string[]> {
  heading(`${number}. ${scenario.title}`);
  const body = {
    from: 'Shop <shop@sender.invalid>',
    to: scenario.to,
    subject: scenario.subject,
    text: 'Hello!\n',
  };
  say('POST', `/api/public/email/send ${paint('dim', JSON.stringify(body))}`);
  const { emailId } = await postern.send(body);
  const email = await postern.after(['queued', 'sending', 'deferred'], emailId, timeoutMs);
  say('GET', `/api/public/email/${emailId}`);
  if (json) console.log(JSON.stringify(email, null, 2).replace(/^/gm, '  '));
  else summarize(email);
  const happened = email.events.map(({ type }) => type);
  return happened.join() === scenario.events.join()
    ? []
    : [`${scenario.to}: ${happened.join(', ')} instead of ${scenario.events.join(', ')}`];
}

function summarize({ status, recipients: [recipient] }: Email): void {
  const { attempts, lastResponse, bounce } = recipient!;
  const { code, enhanced, text } = lastResponse ?? { code: '-', enhanced: '', text: '' };
  say('status', `${status}, attempts: ${attempts}`);
  say('lastResponse', `${code} ${enhanced} ${text}`);
  if (bounce) say('bounce', `${bounce.type}, category ${bounce.category}, fault of the ${bounce.fault}`);
}

/** Verifies the signatures as the receiving side does. Returns what was not as announced. */
async function checkSignatures({ mx, dns }: World): Promise<string[]> {
  heading('The receiving side checks DKIM, with the key that it finds in DNS:');
  const faults: string[] = [];
  const delivered = scenarios.filter(({ events }) => events.includes('email.delivered'));
  if (mx.messages.length !== delivered.length) {
    faults.push(`the mail server took ${mx.messages.length} messages instead of ${delivered.length}`);
  }
  for (const { to, raw } of mx.messages) {
    for (const { result, domain, selector, comment } of await verifyDkim(raw, dns)) {
      const isGood = result === 'pass' && domain === 'sender.invalid';
      const whose = `signed by ${domain}, selector ${selector}${comment ? `: ${comment}` : ''}`;
      say('DKIM', `${paint(isGood ? 'green' : 'red', result)} for the mail to ${to}, ${whose}`);
      if (!isGood) faults.push(`DKIM ${result} for the mail to ${to}, ${whose}`);
    }
  }
  return faults;
}

function paint(format: Parameters<typeof styleText>[0], text: string): string {
  return styleText(format, text, { stream: process.stdout });
}

function heading(text: string): void {
  console.log(`\n${paint('bold', text)}`);
}

function say(what: string, text: string): void {
  console.log(`  ${what.padEnd(12)} ${text}`);
}

async function demonstrate(world: World, json: boolean): Promise<string[]> {
  const faults: string[] = [];
  for (const [index, scenario] of scenarios.entries())
    faults.push(...(await follow(scenario, index + 1, world, json)));
  return [...faults, ...(await checkSignatures(world))];
}

async function main(): Promise<void> {
  const options = { json: { type: 'boolean', default: false } } as const;
  const { json } = readOptions('npm run demo [-- --json]', options);
  const faults = await runScript('demo', async (stage) => demonstrate(await setUp(stage), json));
  if (faults.length === 0) {
    heading('All three went as announced; everything is stopped and its directory removed.');
    console.log('  To see the whole answers of GET: npm run demo -- --json');
    console.log('  Next: npm run dev, which shows each mail of your application, still without a domain.\n');
  } else {
    console.error(`\n${paint('red', 'The demo failed:')}\n  ${faults.join('\n  ')}`);
  }
  process.exit(faults.length === 0 ? 0 : 1);
}

await main();

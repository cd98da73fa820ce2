/**
 * `npm run demo`: Postern at work, for somebody without a domain, DNS or port 25. A DNS, a mail exchanger and Postern
 * itself run on loopback for a few seconds; three mails go in by the HTTP API and end in the three ways that mail
 * ends: delivered, delivered after a deferral, bounced. Then the receiving side checks the DKIM signatures.
 *
 * Exits 0 only if all of it went as told; else says what did not, and exits 1. Leaves nothing behind, after Ctrl-C
 * neither. `npm run demo -- --json` prints the whole answers of GET instead of a summary.
 *
 * The clock is the real one; only the waits between attempts are shorter than an operator would want them.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, styleText } from 'node:util';
import pino from 'pino';
import { orAborted } from '../src/abort.ts';
import { openDatabase } from '../src/db/open.ts';
import type { Log } from '../src/log.ts';
import { start } from '../src/main.ts';
import type { telemetry } from '../src/status/telemetry.ts';
import { verifyDkim } from '../test/helpers/dkim.ts';
import { type Dns, startDns } from '../test/helpers/dns.ts';
import { type Mx, startMx } from '../test/helpers/mx.ts';
import { until } from '../test/helpers/until.ts';
import { createTenant, testConfig } from '../test/helpers/world.ts';

type Email = ReturnType<typeof telemetry>;

interface Story {
  to: string;
  subject: string;
  /** What the newcomer is about to see. */
  tale: string;
  /** What the email must have gone through, by its events. */
  events: string[];
}

/** The mail exchanger behaves by the local part: test/helpers/mx-script.ts. */
const stories: Story[] = [
  {
    to: 'ann@there.invalid',
    subject: 'Welcome',
    tale: 'A mail that arrives.',
    events: ['email.queued', 'email.delivered'],
  },
  {
    to: 'greylist@there.invalid',
    subject: 'Your receipt',
    tale: 'A server that says "not now" to strangers (greylisting). Postern keeps the mail and tries again.',
    events: ['email.queued', 'email.deferred', 'email.delivered'],
  },
  {
    to: 'unknown@there.invalid',
    subject: 'Your code is 4711',
    tale: 'A mailbox that does not exist. Trying again would not help: the mail bounces at once.',
    events: ['email.queued', 'email.bounced'],
  },
];

const waits = '2s 4s';
const patienceMs = 6_000;

interface World {
  dns: Dns;
  mx: Mx;
  url: string;
  key: string;
  interrupted: AbortSignal;
}

/** Starts everything; what ends it goes to `stops`. */
async function setUp(stops: (() => Promise<unknown>)[], interrupted: AbortSignal): Promise<World> {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-demo-'));
  stops.push(() => rm(dataDir, { recursive: true, force: true }));
  const mx = await startMx({ hostname: 'mx.invalid' });
  stops.push(() => mx.close());
  const dns = await startDns({
    'there.invalid': { MX: ['10 mx.invalid'] },
    'mx.invalid': { A: [mx.host] },
  });
  stops.push(() => dns.close());
  const config = testConfig(
    { dataDir, databaseUrl: null, dns, mtaPort: mx.port },
    { POSTERN_MTA_RETRY: waits },
  );
  const postern = await start(config, { log: logToScreen() });
  stops.push(() => postern.stop());
  const db = await openDatabase(config);
  stops.push(() => db.destroy());
  const key = await createTenant(db, config, dns);
  heading('Everything below runs on this machine; the names end in .invalid and no mail leaves it.');
  say('DNS', `${dns.address}, says that mail for there.invalid goes to mx.invalid`);
  say('mail server', `${mx.host}:${mx.port}, the mx.invalid of the recipients`);
  say('Postern', `${postern.url}, its data in ${dataDir}`);
  say('', 'An organization, its API key, and its domain sender.invalid with a DKIM key in DNS: made.');
  say('', `After a deferral it waits ${waits.split(' ')[0]}, give or take; in production 30 s.`);
  interrupted.throwIfAborted();
  return { dns, mx, url: postern.url, key, interrupted };
}

/** What main.ts writes to standard output, the mail log's lines, made for the eye. */
function logToScreen(): Log {
  const verbs: Record<string, Parameters<typeof styleText>[0]> = {
    delivered: 'green',
    deferred: 'yellow',
    bounced: 'red',
  };
  const write = (line: string) => {
    const { time, msg, mail, err } = JSON.parse(line);
    const verb = String(msg).split(' ', 1)[0]!;
    const text = mail
      ? paint(verbs[verb] ?? 'cyan', verb) + msg.slice(verb.length)
      : `${paint('red', msg)} ${err?.message ?? ''}`;
    console.log(`  ${paint('dim', new Date(time).toISOString().slice(11, 23))} ${text}`);
  };
  return pino({ level: 'info', base: null }, { write });
}

/** One mail from POST to its end. Returns what was not as told. */
async function tell(story: Story, number: number, world: World, json: boolean): Promise<string[]> {
  const call = async (path: string, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${world.key}`, 'content-type': 'application/json' };
    const request = { headers, signal: world.interrupted, ...init };
    const response = await fetch(`${world.url}/api/public/email/${path}`, request);
    return { status: response.status, body: (await response.json()) as Email };
  };
  heading(`${number}. ${story.tale}`);
  const body = { from: 'Shop <shop@sender.invalid>', to: story.to, subject: story.subject, text: 'Hello!\n' };
  say('POST', `/api/public/email/send ${paint('dim', JSON.stringify(body))}`);
  const { status, body: answer } = await call('send', { method: 'POST', body: JSON.stringify(body) });
  if (status !== 200) return [`${story.to}: the send was answered ${status}, ${JSON.stringify(answer)}`];
  let email: Email | undefined;
  await until(
    async () => {
      email = (await call(answer.emailId)).body;
      return !['queued', 'sending', 'deferred'].includes(email.status);
    },
    { timeout: patienceMs, what: () => `the end of the mail to ${story.to}; last: ${JSON.stringify(email)}` },
  );
  say('GET', `/api/public/email/${answer.emailId}`);
  if (json) console.log(JSON.stringify(email, null, 2).replace(/^/gm, '  '));
  else summarize(email!);
  const happened = email!.events.map(({ type }) => type);
  return happened.join() === story.events.join()
    ? []
    : [`${story.to}: ${happened.join(', ')} instead of ${story.events.join(', ')}`];
}

function summarize({ status, recipients: [recipient] }: Email): void {
  const { attempts, lastResponse, bounce } = recipient!;
  const { code, enhanced, text } = lastResponse ?? { code: '-', enhanced: '', text: '' };
  say('status', `${status}, attempts: ${attempts}`);
  say('lastResponse', `${code} ${enhanced} ${text}`);
  if (bounce) say('bounce', `${bounce.type}, category ${bounce.category}, fault of the ${bounce.fault}`);
}

/** What the receiving side makes of the signatures. Returns what was not as told. */
async function checkSignatures({ mx, dns }: World): Promise<string[]> {
  heading('The receiving side checks DKIM, with the key that it finds in DNS:');
  const faults: string[] = [];
  const delivered = stories.filter(({ events }) => events.includes('email.delivered'));
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
  for (const [index, story] of stories.entries()) faults.push(...(await tell(story, index + 1, world, json)));
  return [...faults, ...(await checkSignatures(world))];
}

function wantsJson(): boolean {
  try {
    return parseArgs({ options: { json: { type: 'boolean', default: false } } }).values.json;
  } catch (error) {
    console.error(`demo: ${(error as Error).message}\nusage: npm run demo [-- --json]`);
    process.exit(2);
  }
}

async function main(): Promise<void> {
  const json = wantsJson();
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => interrupted.abort(new Error(`${signal}: stopped`)));
  }
  const stops: (() => Promise<unknown>)[] = [];
  let faults: string[];
  try {
    const world = await setUp(stops, interrupted.signal);
    faults = await orAborted(demonstrate(world, json), interrupted.signal);
  } catch (error) {
    faults = [(error as Error).message];
  }
  for (const stop of stops.reverse()) {
    await stop().catch((error) => faults.push(`while stopping: ${error.message}`));
  }
  if (faults.length === 0) {
    heading('All three went as told; everything is stopped and its directory removed.');
    console.log('  Next: the quick start in README.md, with a domain of your own.');
    console.log('  To see the whole answers of GET: npm run demo -- --json\n');
  } else {
    console.error(`\n${paint('red', 'The demo failed:')}\n  ${faults.join('\n  ')}`);
  }
  process.exit(faults.length === 0 ? 0 : 1);
}

await main();

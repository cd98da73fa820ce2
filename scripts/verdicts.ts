/**
 * `node scripts/verdicts.ts [--named TEXT] [--json]`: judges SPF, DKIM and DMARC of some 300 mails (verdicts/cases.ts) as received
 * mail is judged, and has other people's programs judge them too: pyspf; dkimpy, each signature, and OpenDKIM, whether any passes;
 * OpenDMARC, of what the first two found. Prints each difference, and why it is there. Needs root, and installs nothing:
 *
 *   apt-get install -y --no-install-recommends python3-spf python3-dkim python3-nacl opendkim opendmarc miltertest
 *
 * Exits 0 if every difference is explained, 1 if one is not or is explained but is not there, 2 if a program is missing.
 */
import { execFile, spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { startDns, type Zone } from '#lab/dns/dns.ts';
import { conclude } from '#lab/load/conclude.ts';
import { tableOf } from '#lab/load/figures.ts';
import { endIf, readOptions, runScript, type Stage } from '#lab/load/stage.ts';
import { obstacleTo } from '#lab/programs/jail.ts';
import { openDmarcPrograms, startOpenDmarc } from '#lab/programs/opendmarc.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import { createReceivedReader } from '#mail/received/reading-tasks.ts';
import type { Verdicts } from '#mail/received/received-mail.ts';
import { createJudge } from '#mail/received/verdicts.ts';
import { judges } from './judges/judges.ts';
import { type Case, cases, type Judge } from './verdicts/cases.ts';
import { publicKey, signatureOf } from './verdicts/sign.ts';

const usage = 'node scripts/verdicts.ts [--named TEXT] [--json]';
const args = readOptions(usage, {
  named: { type: 'string', default: '' },
  json: { type: 'boolean', default: false },
});

interface Trial extends Case {
  domain: string;
  raw: string;
  file: string;
  peer: string;
  helo: string;
  sender: string;
}

const resolverHost = '127.88.0.54';
const hostname = 'mx.there.invalid';

/** `$D` is the domain of the case, `$DU` the same in capitals. */
function fill<Value>(value: Value, domain: string): Value {
  return JSON.parse(JSON.stringify(value).replaceAll('$DU', domain.toUpperCase()).replaceAll('$D', domain));
}

function trialOf(given: Case, number: number, directory: string): Trial {
  const domain = `d${number}.invalid`;
  const one = { ...fill(given, domain), ...(given.change && { change: given.change }) };
  const froms = one.fields ?? [`From: ${one.from ?? `Ann <ann@${domain}>`}`];
  const fields = [
    ...froms,
    'To: orders@x.invalid',
    'Subject: Your order',
    'Date: Sat, 28 Nov 2026 10:00:00 +0000',
    `Message-ID: <${number}@${domain}>`,
  ];
  const body = one.body ?? 'Hello,\r\n\r\nyour order has been sent today\r\n';
  const signatures = (one.signatures ?? []).map(({ by, ...tags }) =>
    signatureOf({ fields, body }, tags, domain, by),
  );
  const raw = `${[...signatures, ...fields].join('\r\n')}\r\n\r\n${body}`;
  return {
    ...one,
    domain,
    raw: one.change?.(raw) ?? raw,
    file: join(directory, `${number}.eml`),
    peer: one.peer ?? '192.0.2.77',
    helo: one.helo ?? 'mail.there.invalid',
    sender: one.sender ?? `bounces@${domain}`,
  };
}

function zoneOf(trials: Trial[]): Zone {
  const key = (selector: 'rsa' | 'ed', type: string) => ({
    TXT: [`v=DKIM1; k=${type}; p=${publicKey(selector)}`],
  });
  const zone: Zone = { 'rsa._domainkey.other.invalid': key('rsa', 'rsa') };
  for (const {
    domain,
    spf = 'v=spf1 ip4:192.0.2.77 -all',
    dmarc = 'v=DMARC1; p=reject',
    zone: own,
  } of trials)
    Object.assign(zone, {
      [`rsa._domainkey.${domain}`]: key('rsa', 'rsa'),
      [`ed._domainkey.${domain}`]: key('ed', 'ed25519'),
      [domain]: spf === null ? { A: ['192.0.2.1'] } : { TXT: [spf] },
      ...(dmarc !== null && { [`_dmarc.${domain}`]: { TXT: [dmarc] } }),
      ...own,
    });
  return zone;
}

interface Found {
  spf: string;
  /** Whether each signature passes, from the top. */
  dkim: boolean[];
  anySignature: boolean;
  dmarc: string;
}

async function judgedByUs(stage: Stage, trials: Trial[], dns: { address: string }): Promise<Verdicts[]> {
  const thread = new URL('../src/mail/received/reading-thread.ts', import.meta.url);
  const reader = createReceivedReader({
    spawn: () => new Worker(thread),
    onError: (error) => console.error(error),
  });
  await stage.start(Promise.resolve(reader), (it) => it.close());
  const judge = createJudge(createResolver([dns.address]));
  const found: Verdicts[] = [];
  for (const { raw: text, sender, helo, peer } of trials) {
    const raw = Buffer.from(text, 'latin1');
    const read = (await reader.mail('org', raw))!;
    found.push(
      await judge({ sender, helo, peer, read, check: (keys) => reader.signatures('org', raw, keys) }),
    );
  }
  return found;
}

async function judgedByOthers(stage: Stage, trials: Trial[], zone: Zone): Promise<Found[]> {
  const dns = await stage.start(startDns(zone, { host: resolverHost, port: 53 }), (it) => it.close());
  const job = { zone, mails: trials.map(({ file, peer, helo, sender }) => ({ file, peer, helo, sender })) };
  const running = promisify(execFile)('/usr/bin/python3', [join(import.meta.dirname, 'verdicts/judge.py')]);
  running.child.stdin!.end(JSON.stringify(job));
  const lines: Pick<Found, 'spf' | 'dkim'>[] = (await running).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const keys = Object.fromEntries(
    Object.keys(zone).flatMap((name) => {
      const key = name.includes('._domainkey.') ? textAt(zone, name) : null;
      return key === null ? [] : [[name, key]];
    }),
  );
  const openDkim = judges.find(({ name }) => name === 'OpenDKIM')!;
  const signed: boolean[] = [];
  for (const { file } of trials) {
    // It ends at a mail that it cannot judge.
    const [remarks] = await openDkim
      .judge([file], { stage, dns, keys, envelopes: new Map() })
      .catch(() => [['no verdict']]);
    signed.push(remarks?.length === 0);
  }
  const directory = join(stage.directory, 'opendmarc');
  await mkdir(directory, { mode: 0o755 });
  const openDmarc = await stage.start(startOpenDmarc({ directory, dnsHost: resolverHost, hostname }), (it) =>
    it.stop(),
  );
  const found: Found[] = [];
  for (const [index, { spf, dkim }] of lines.entries()) {
    const trial = trials[index]!;
    const mail = [authenticationResults(trial, spf, dkim), trial.raw].join('\r\n').replaceAll('\r\n', '\n');
    const dmarc = await openDmarc.judge(mail, trial.sender);
    found.push({ spf, dkim, anySignature: signed[index]!, dmarc });
  }
  return found;
}

/** The first TXT record; null without one. */
function textAt(zone: Zone, name: string): string | null {
  const entry = zone[name];
  if (!entry || typeof entry === 'string') return null;
  if (Array.isArray(entry.TXT)) return entry.TXT[0]!;
  return Array.isArray(entry.CNAME) ? textAt(zone, entry.CNAME[0]!) : null;
}

/** RFC 8601, of what others found. */
function authenticationResults({ sender, helo, raw }: Trial, spf: string, dkim: boolean[]): string {
  const of =
    sender === '' ? `smtp.helo=${helo}` : `smtp.mailfrom=${sender.slice(sender.lastIndexOf('@') + 1)}`;
  const domains = [...raw.matchAll(/^DKIM-Signature:(?:(?!\r\n\S)[\s\S])*?\bd=([^;\s]+)/gim)].map(
    ([, domain]) => domain,
  );
  const results = dkim.map(
    (passes, index) => `dkim=${passes ? 'pass' : 'fail'} header.d=${domains[index] ?? 'none.invalid'}`,
  );
  return `Authentication-Results: ${[hostname, `spf=${spf} ${of}`, ...results].join('; ')}`;
}

interface Difference {
  name: string;
  judge: Judge;
  ours: string;
  theirs: string;
  why: string;
}

function differences(trial: Trial, ours: Verdicts, theirs: Found): Difference[] {
  const passes = ours.dkim.map(({ result }) => result === 'pass');
  const policy = ours.dmarc.result === 'fail' ? ` p=${ours.dmarc.policy}` : '';
  const pairs: [Judge, string, string][] = [
    ['pyspf', ours.spf.result, theirs.spf],
    ['dkimpy', String(passes), String(theirs.dkim)],
    ['OpenDKIM', String(passes.includes(true)), String(theirs.anySignature)],
    ['OpenDMARC', ours.dmarc.result + policy, verdictIn(theirs.dmarc)],
  ];
  return pairs.flatMap(([judge, us, them]) => {
    const why = trial.known?.[judge];
    if (us !== them) return [{ name: trial.name, judge, ours: us, theirs: them, why: why ?? '' }];
    return why === undefined ? [] : [{ name: trial.name, judge, ours: us, theirs: 'the same', why: '' }];
  });
}

/** `fail p=reject` of `dmarc=fail (p=reject dis=none) header.from=…`. */
function verdictIn(text: string): string {
  const [, result, policy] = /dmarc=(\w+)(?: \((p=\w+))?/.exec(text) ?? [];
  return result === 'fail' ? `${result} ${policy}` : (result ?? text);
}

const hasPython = spawnSync('/usr/bin/python3', ['-c', 'import dkim, nacl, spf']).status === 0;
endIf(
  hasPython
    ? obstacleTo([...openDmarcPrograms, '/usr/sbin/opendkim'], undefined)
    : 'not there: python3-spf, python3-dkim or python3-nacl',
);
let found: Difference[] = [];
let count = 0;
const faults = await runScript('verdicts', async (stage) => {
  const trials = cases
    .filter(({ name }) => name.includes(args.named))
    .map((one, number) => trialOf(one, number, stage.directory));
  for (const { file, raw } of trials) await writeFile(file, raw, 'latin1');
  const zone = zoneOf(trials);
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const ours = await judgedByUs(stage, trials, dns);
  const theirs = await judgedByOthers(stage, trials, zone);
  count = trials.length;
  found = trials.flatMap((trial, index) => differences(trial, ours[index]!, theirs[index]!));
  return found
    .filter(({ why }) => why === '')
    .map(({ name, judge, ours: us, theirs: them }) => `${name}: ${us}; ${judge}: ${them}`);
});
conclude({
  faults,
  json: args.json && { count, differences: found },
  print() {
    const rows = found.map(({ name, judge, ours, theirs, why }) => [name, judge, ours, theirs, why]);
    console.log(tableOf(['mail', 'judge', 'ours', 'theirs', 'why'], rows, [44, 10, 16, 16, 60]));
    console.log(`${count} mails, ${found.length} differences`);
  },
});

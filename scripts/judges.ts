/**
 * `node scripts/judges.ts [--only NAME]… [--own-return-paths] [--json]`: sends 65 kinds of mail (judges/kinds.jsonl) through
 * the API and by submission, each to a host with 8BITMIME and to a Postfix whose next hop has neither 8BITMIME nor SMTPUTF8,
 * and shows what other people's programs find in what arrives (judges/judges.ts): DKIM verifiers, parsers, spam filters with
 * every symbol of 0.1 or more. The filters are told the return path that the mail arrived with. Each finding is of one kind:
 *
 *   ours          a fault of ours: exit 1
 *   return path   that of this server is not at the From's domain; with --own-return-paths, it is
 *   VERP          the return path is not the From's address: no return path that names its delivery can be
 *   any composer  also found in the same mail as nodemailer composes it, or as it was submitted
 *
 * Installs nothing; says what is missing. The hop needs root and Postfix. Exits 0 if all signatures pass, nothing is lost and no
 * finding is ours, 1 if not.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import MailComposer from 'nodemailer/lib/mail-composer/index.js';
import { newDkimKey } from '#accounts/domains.ts';
import { insertDkimKey } from '#accounts/rows/dkim-keys.ts';
import { insertDomain, setDomainStatus } from '#accounts/rows/domains-table.ts';
import { createSeal } from '#accounts/seal.ts';
import { type Dns, startDns } from '#lab/dns/dns.ts';
import { conclude } from '#lab/load/conclude.ts';
import { progress, tableOf } from '#lab/load/figures.ts';
import { freePort } from '#lab/load/ports.ts';
import { readOptions, runScript, type Stage } from '#lab/load/stage.ts';
import { type Mx, startMx } from '#lab/mx/mx.ts';
import { connectSmtp, plain } from '#lab/mx/smtp-client.ts';
import { startPostfix } from '#lab/programs/postfix.ts';
import { isInstalled } from '#lab/programs/programs.ts';
import { type Postern, startPostern } from '#lab/scenes/postern.ts';
import { until } from '#lab/until.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import { loadConfig } from '#platform/settings/config.ts';
import { judges } from './judges/judges.ts';
import { type ApiMail, invitationType, kinds, twiceSigned } from './judges/kinds.ts';

const args = readOptions('node scripts/judges.ts [--only NAME]… [--own-return-paths] [--json]', {
  only: { type: 'string', multiple: true, default: [] },
  'own-return-paths': { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
});

interface Way {
  name: string;
  domain: string;
  mx: Mx;
  hasUtf8: boolean;
}

interface World {
  dns: Dns;
  postern: Postern;
  submissionPort: number;
  ways: Way[];
}

interface Arrived {
  name: string;
  way: string;
  file: string;
  /** The return path. */
  from: string;
  to: string;
}

/** Mail composed elsewhere is not signed. */
const verifiers = ['dkimpy', 'OpenDKIM', 'mailauth'];
const canRelay = process.getuid?.() === 0 && isInstalled('postfix');
const present = judges.filter(
  (one) => one.isThere() && (args.only.length === 0 || args.only.includes(one.name)),
);

async function setUp(stage: Stage): Promise<World> {
  const mx = await stage.start(startMx({ host: '127.0.0.2' }), (it) => it.close());
  const ways: Way[] = [{ name: '8BITMIME', domain: 'direct.invalid', mx, hasUtf8: true }];
  if (canRelay) ways.push(await startHop(stage, mx.port));
  const zone = {
    'direct.invalid': { MX: ['10 mx1.invalid'] },
    'hop.invalid': { MX: ['10 mx2.invalid'] },
    'there.invalid': { MX: ['10 mx1.invalid'] },
    'mx1.invalid': { A: ['127.0.0.2'] },
    'mx2.invalid': { A: ['127.0.0.3'] },
  };
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const submissionPort = await freePort('127.0.0.1');
  const settings = { POSTERN_LOG_LEVEL: 'error', POSTERN_SUBMISSION_TLS_PORT: String(submissionPort) };
  const postern = await startPostern(stage, { dns, mtaPort: mx.port, settings });
  await addTwiceSigned(postern, dns);
  if (args['own-return-paths']) await useOwnReturnPaths(postern);
  return { dns, postern, submissionPort, ways };
}

/** Another domain of the same organization, whose mail also has a signature by Ed25519. */
async function addTwiceSigned({ db, dataDir }: Postern, dns: Dns): Promise<void> {
  const seal = createSeal(loadSecrets(loadConfig({ POSTERN_DATA_DIR: dataDir })));
  const { org_id: orgId } = await db('domains').first('org_id');
  const [rsa, ed25519] = [await newDkimKey(), await newDkimKey('ed25519')];
  const now = Date.now();
  const domain = {
    orgId,
    name: twiceSigned,
    dkimSelector: rsa.selector,
    dkimPublicKey: rsa.publicKey,
    dkimPrivateKey: seal.close(rsa.privateKey),
  };
  const domainId = (await insertDomain(db, domain, now))!;
  await setDomainStatus(db, domainId, 'verified', now);
  const second = {
    ...ed25519,
    domainId,
    algorithm: 'ed25519' as const,
    privateKey: seal.close(ed25519.privateKey),
  };
  await insertDkimKey(db, second, now);
  await db('dkim_keys').where({ domain_id: domainId }).update({ status: 'signing' });
  dns.set({
    [`${rsa.selector}._domainkey.${twiceSigned}`]: { TXT: [`v=DKIM1; k=rsa; p=${rsa.publicKey}`] },
    [`${ed25519.selector}._domainkey.${twiceSigned}`]: {
      TXT: [`v=DKIM1; k=ed25519; p=${ed25519.publicKey}`],
    },
  });
}

/** As if each domain's record had been found. What was verified takes effect within a second. */
async function useOwnReturnPaths({ db }: Postern): Promise<void> {
  await db('domains').update({ return_path: 'used' });
  await setTimeout(2_000);
}

/** Postfix, which offers 8BITMIME, and the host behind it, which does not. */
async function startHop(stage: Stage, port: number): Promise<Way> {
  const mx = await stage.start(startMx({ host: '127.0.0.4', tls: false, extensions: ['PIPELINING'] }), (it) =>
    it.close(),
  );
  const directory = join(stage.directory, 'hop');
  await mkdir(directory, { mode: 0o755 });
  const settings = {
    relay_domains: 'hop.invalid',
    relay_recipient_maps: '',
    virtual_mailbox_domains: '',
    virtual_mailbox_maps: '',
    transport_maps: `inline:{ { hop.invalid = relay:[${mx.host}]:${mx.port} } }`,
    smtp_dns_support_level: 'disabled',
    smtpd_client_restrictions: '',
    smtpd_relay_restrictions: 'permit_auth_destination, reject',
  };
  const pemFile = fileURLToPath(new URL('../test/fixtures/mx.pem', import.meta.url));
  const services = 'relay     unix - - n - - smtp\nsmtp      unix - - n - - smtp\n';
  const options = {
    directory,
    host: '127.0.0.3',
    port,
    hostname: 'mx2.invalid',
    mailboxes: [],
    pemFile,
    settings,
    services,
  };
  await stage.start(startPostfix(options), (it) => it.stop());
  return { name: 'Postfix, then a host without', domain: 'hop.invalid', mx, hasUtf8: false };
}

async function sendAll({ postern, submissionPort, ways }: World): Promise<string[]> {
  const client = await connectSmtp(submissionPort, { tls: true });
  await client.says('EHLO app.sender.invalid\r\n', '250');
  await client.says(`AUTH PLAIN ${plain(postern.key)}\r\n`, '235');
  const faults: string[] = [];
  for (const { domain } of ways) {
    for (const [index, { name, mail }] of kinds.entries()) {
      const to = `k${index}@${domain}`;
      if (!Array.isArray(mail)) {
        await postern.send({ to, ...mail }).catch((error) => faults.push(`${name}: ${error.message}`));
        continue;
      }
      await client.says('MAIL FROM:<shop@sender.invalid> BODY=8BITMIME SMTPUTF8\r\n', '250');
      await client.says(`RCPT TO:<${to}>\r\n`, '250');
      await client.says('DATA\r\n', '354');
      const message = [`To: ${to}`, ...mail].join('\r\n').replace(/^\./gm, '..');
      await client
        .says(`${message}\r\n.\r\n`, '250')
        .catch((error) => faults.push(`${name}: ${error.message}`));
    }
  }
  return faults;
}

/** Waits until what can arrive has arrived, and writes it to files. */
async function collect(stage: Stage, { ways }: World): Promise<Arrived[]> {
  const arrived: Arrived[] = [];
  for (const { name: way, domain, mx, hasUtf8 } of ways) {
    for (const [index, { name, needsUtf8 }] of kinds.entries()) {
      if (needsUtf8 && !hasUtf8 && domain !== 'direct.invalid') continue;
      const to = `k${index}@${domain}`;
      const { raw, from } = await until(() => mx.messages.find((one) => one.to.includes(to)), {
        timeout: 60_000,
        what: `${name} at ${way}`,
      });
      const file = join(stage.directory, `${domain}-${index}.eml`);
      await writeFile(file, raw);
      arrived.push({ name, way, file, from, to });
    }
  }
  return arrived;
}

/** For each kind a file with the same content as nodemailer composes it, or as the program submitted it. */
async function composeElsewhere(stage: Stage): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const [index, { name, mail }] of kinds.entries()) {
    const file = join(stage.directory, `elsewhere-${index}.eml`);
    await writeFile(file, Array.isArray(mail) ? asSubmitted(mail) : await byNodemailer(mail));
    files.set(name, file);
  }
  return files;
}

function asSubmitted(lines: string[]): string {
  const own = [`Date: ${new Date().toUTCString()}`, 'Message-ID: <4711@sender.invalid>'];
  return [...own, 'To: ann@direct.invalid', ...lines, ''].join('\r\n');
}

function byNodemailer(mail: ApiMail): Promise<Buffer> {
  const files = mail.attachments?.map((one) => ({ ...one, cid: one.contentId, encoding: 'base64' }));
  const [first] = files ?? [];
  const isInvitation = first?.contentType === invitationType;
  const icalEvent = isInvitation ? { ...first, method: 'REQUEST' } : undefined;
  const attachments = isInvitation ? [] : files;
  return new MailComposer({ ...mail, to: 'ann@direct.invalid', attachments, icalEvent }).compile().build();
}

type FindingKind = 'ours' | 'return path' | 'VERP' | 'any composer';

interface Finding {
  kind: FindingKind;
  judge: string;
  way: string;
  remark: string;
  mails: string[];
}

async function judgeAll(stage: Stage, { dns, postern }: World, arrived: Arrived[]): Promise<Finding[]> {
  const rows = await postern.db('domains').select('name', 'dkim_selector', 'dkim_public_key');
  const others25519 = await postern
    .db('dkim_keys')
    .join('domains', 'domains.id', 'dkim_keys.domain_id')
    .select('domains.name', 'selector', 'public_key');
  const keys = Object.fromEntries([
    ...rows.map((row) => [
      `${row.dkim_selector}._domainkey.${row.name}`,
      `v=DKIM1; k=rsa; p=${row.dkim_public_key}`,
    ]),
    ...others25519.map((row) => [
      `${row.selector}._domainkey.${row.name}`,
      `v=DKIM1; k=ed25519; p=${row.public_key}`,
    ]),
  ]);
  const files = arrived.map(({ file }) => file);
  const others = await composeElsewhere(stage);
  // A composer that sends by itself uses the From's address.
  const envelopes = new Map(
    kinds.map(({ name, mail }) => [others.get(name)!, { from: fromOf(mail), to: 'ann@direct.invalid' }]),
  );
  for (const { file, from, to } of arrived) envelopes.set(file, { from, to });
  const findings: Finding[] = [];
  for (const { name: judge, judge: look } of present) {
    progress(judge);
    const compared = verifiers.includes(judge) ? [] : [...others.values()];
    const found = await look([...files, ...compared], { stage, dns, keys, envelopes });
    if (found.length !== files.length + compared.length)
      throw new Error(`${judge} judged ${found.length} of ${files.length + compared.length} mails`);
    const expected = new Map([...others.keys()].map((name, index) => [name, found[files.length + index]]));
    for (const [index, { name, way }] of arrived.entries()) {
      for (const remark of new Set(found[index])) {
        const kind = kindOf(remark, expected.get(name) ?? []);
        note(findings, { kind, judge, way, remark }, name);
      }
    }
  }
  return findings;
}

/** A header of HTTP holds ASCII only. */
const fromOf = (mail: ApiMail | string[]) =>
  (!Array.isArray(mail) && /(?:^|<)([!-~]+@[!-;=?-~]+)>?$/.exec(mail.from)?.[1]) || 'shop@sender.invalid';

/** The return path is at another domain than From: SpamAssassin's rule. */
const ofReturnPath = /^HEADER_FROM_DIFFERENT_DOMAINS=/;
/** Rspamd compares whole addresses, so that every mail has these whose return path names its delivery. */
const ofVerp = /^(?:FORGED_SENDER|FROM_NEQ_ENVFROM)=/;

function kindOf(remark: string, expected: string[]): FindingKind {
  if (expected.includes(remark)) return 'any composer';
  if (ofVerp.test(remark)) return 'VERP';
  return ofReturnPath.test(remark) ? 'return path' : 'ours';
}

function note(findings: Finding[], { kind, judge, way, remark }: Omit<Finding, 'mails'>, mail: string): void {
  const same = findings.find(
    (one) => one.kind === kind && one.judge === judge && one.way === way && one.remark === remark,
  );
  if (same) same.mails.push(mail);
  else findings.push({ kind, judge, way, remark, mails: [mail] });
}

function print(findings: Finding[], arrived: Arrived[]): void {
  const head = ['whose', 'judge', 'hops', 'remark', 'mails', 'for example'];
  const order: FindingKind[] = ['ours', 'return path', 'VERP', 'any composer'];
  const sorted = order.flatMap((one) => findings.filter(({ kind }) => kind === one));
  const rows = sorted.map(({ kind, judge, way, remark, mails }) => {
    return [kind, judge, way, remark.slice(0, 60), mails.length, mails.slice(0, 3).join('\n')];
  });
  console.log(tableOf(head, rows));
  if (findings.some(({ kind }) => kind === 'return path'))
    console.log(
      "The cure of a return path finding is a return path under the sender's domain: --own-return-paths.",
    );
  if (findings.some(({ kind }) => kind === 'VERP'))
    console.log('A VERP finding has no cure: the return path of every mail names its delivery.');
  const own = arrived.filter(({ from }) => from.includes('@bounces.')).length;
  console.log(
    `${arrived.length} mails arrived, ${own} with a return path under the sender's domain; judged by ${present.map(({ name }) => name).join(', ')}.`,
  );
}

for (const { name, packages } of judges.filter((one) => !one.isThere())) {
  console.error(`not installed, left out: ${name} (apt-get install ${packages})`);
}
if (!canRelay)
  console.error('left out: the hop without 8BITMIME, which needs root and Postfix (apt-get install postfix)');
let findings: Finding[] = [];
const faults = await runScript('judges', async (stage) => {
  const world = await setUp(stage);
  const refused = await sendAll(world);
  if (refused.length > 0) return refused;
  const arrived = await collect(stage, world);
  findings = await judgeAll(stage, world, arrived);
  if (!args.json) print(findings, arrived);
  const ours = findings.filter(({ kind }) => kind === 'ours');
  return ours.map(({ judge, way, remark, mails }) => `${judge}, ${way}: ${remark}: ${mails.join('; ')}`);
});
conclude({ faults, json: args.json && { findings } });

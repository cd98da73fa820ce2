/**
 * The journeys of the command line, a test a group: JSON shapes, exit codes, what is refused and how that is said.
 * Each test has a data directory of its own; its commands run one after the other, as an operator types them.
 */
import { appendFile, chmod, cp, mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { v7 as uuid } from 'uuid';
import { commandTable } from '../../src/cli/commands.ts';
import { openDatabase } from '../../src/db/engine/open.ts';
import { mailLogFile } from '../../src/mail/mail-log.ts';
import {
  cliOf,
  createCli,
  createProcessCli,
  directory,
  makeInstallation,
  root,
  run,
  startCli,
} from '../lab/cli.ts';
import { startDns } from '../lab/dns/dns.ts';
import { startWorld, type World } from '../lab/scenes/world.ts';
import { until } from '../lab/until.ts';

const isUuid = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const isIso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

test('org: made, listed, found by id and by name, limited', async (t) => {
  const { json, cli, refusal, acme } = await startCli(t);
  t.regex(acme.id, isUuid);
  t.regex(acme.createdAt, isIso);
  t.like(acme, { name: 'Acme', wallet: 0, limits: { perSecond: 2, perDay: 5000, emailsPerDay: 5000 } });
  t.like(acme.quota, { limit: 'unlimited', used: 0, remaining: 'unlimited' });
  const paying = await json('org create --wallet 7 --name', 'Two Words');
  t.like(paying, { wallet: 7, quota: { limit: 0, used: 0, remaining: 0 } });
  const both = await json('org create --name Both --quota 100 --wallet 5');
  t.like(both, { wallet: 5, quota: { limit: 100, used: 0, remaining: 100 } });

  t.deepEqual(await json('org list'), [acme, paying, both]);
  t.deepEqual(await json('org show', acme.id.toUpperCase()), acme);
  t.deepEqual(await json('org show Acme'), acme);
  t.regex(
    await refusal(1, 'org create --name Acme'),
    /organization is named "Acme" already; give .* another/,
  );
  t.regex(await refusal(1, 'org show Nobody'), /no organization "Nobody"; `postern org list`/);

  const limited = await json('org limits --per-second 10 --emails-per-day unlimited', 'Two Words');
  t.deepEqual(limited.limits, { perSecond: 10, perDay: 5000, emailsPerDay: 'unlimited' });
  const lines = (await cli('org list')).stdout.toString().split('\n');
  t.deepEqual(
    lines.map((line) => line.split('\t').at(-1)),
    ['Acme', 'Two Words', 'Both', ''],
    'a pipe gets lines without a head',
  );
});

test('org pool: pinned, shown, and warned of a pool that no node has', async (t) => {
  const { json, cli, refusal, acme } = await startCli(t);
  t.is(acme.pool, null);
  const pinned = await cli('org pool Acme Bulk-2 --json');
  t.is(JSON.parse(pinned.stdout.toString()).pool, 'bulk-2');
  t.is(pinned.code, 0);
  t.regex(
    pinned.stderr,
    /no running node has a source address of the pool bulk-2 \(no node is running\): the mail waits/,
  );
  t.is((await json('org show Acme')).pool, 'bulk-2');
  t.regex((await cli('org show Acme')).stdout.toString(), /source pool\tbulk-2\n/);
  t.is((await json('org pool Acme --none')).pool, null);
  t.is((await json('org pool Acme default')).pool, null);
  t.regex(await refusal(2, 'org pool Acme'), /give either the NAME of a pool or --none/);
  t.regex(await refusal(2, 'org pool Acme bulk --none'), /give either the NAME of a pool or --none/);
  t.regex(await refusal(2, 'org pool Acme b_lk'), /"b_lk" is not the name of an IP pool/);
});

test('key: made, listed without the key, rotated, revoked', async (t) => {
  const { json, cli, refusal } = await startCli(t);
  const create = 'key create --org Acme --label web --scope';
  const made = await json(`${create} email:send --scope email:read --domain Example.invalid`);
  t.deepEqual(Object.keys(made), ['id', 'key', 'scopes', 'strict', 'test']);
  t.regex(made.key, /^em_[\w-]{40,}$/);
  t.deepEqual(made.scopes, ['email:send', 'email:read', 'domain_scope:example.invalid']);

  const rotated = await json('key rotate', made.id, '--now');
  t.deepEqual(rotated.scopes, made.scopes);
  t.not(rotated.key, made.key);
  const listed = await json('key list --org Acme');
  const shown = listed.map((key: Record<string, unknown>) => [key.id, key.label, key.revokedAt !== null]);
  t.deepEqual(shown, [
    [made.id, 'web', true],
    [rotated.id, 'web', false],
  ]);
  t.false(JSON.stringify(listed).includes(rotated.key));

  t.regex((await json('key revoke', rotated.id)).revokedAt, isIso);
  t.regex(await refusal(1, 'key rotate', rotated.id), /The key has been revoked/);
  t.is((await json('key list --org Acme')).length, 2, 'a rotation that is refused makes no key');
  t.regex(await refusal(1, 'key revoke nonsense'), /no key with the id "nonsense"/);
  t.regex(await refusal(2, `${create} email:sned`), /"email:sned" is not a scope; there are email:send, /);
  t.false(listed[0].strict);
  const strict = await json(`${create} email:send --strict --test`);
  t.like(strict, { strict: true, test: true });
  t.regex(strict.key, /^em_test_/);
  const kept = (await json('key list --org Acme')).find(({ id }: { id: string }) => id === strict.id);
  t.like(kept, { strict: true, test: true });
  t.regex((await cli(`${create} email:send --strict`)).stdout.toString(), /options\s+strict\n/);
  const idle = await cli(`${create} domain_scope:example.invalid`);
  t.is(idle.code, 0);
  t.regex(idle.stderr, /this key cannot do anything/);
});

test('domain: verified when its DKIM record is found, and no DNS trouble takes that away', async (t) => {
  const dns = await startDns({ 'example.invalid': { TXT: ['v=spf1 -all'] } });
  t.teardown(() => dns.close());
  const { json, cli, refusal } = await startCli(t, { POSTERN_DNS_SERVERS: dns.address });
  const added = await json('domain add Example.INVALID. --org Acme');
  t.deepEqual(Object.keys(added), ['id', 'name', 'status', 'records']);
  t.like(added, { name: 'example.invalid', status: 'pending' });
  const [dkim] = added.records;
  t.deepEqual(Object.keys(dkim), ['type', 'name', 'value', 'purpose', 'note', 'required']);
  const ofAcme = 'example.invalid --org Acme';
  t.regex(
    await refusal(1, `domain add ${ofAcme}`),
    /example\.invalid is already registered in this organization/,
  );

  const verify = async () => {
    const { code, stdout, stderr } = await cli(`domain verify ${ofAcme} --json`);
    return { code, stderr, ...JSON.parse(stdout.toString()) };
  };
  const early = await verify();
  t.like(early, { code: 1, stderr: '', name: 'example.invalid', status: 'pending' });
  const seen = early.records.map(({ purpose, ok, found }: Record<string, unknown>) => [purpose, ok, found]);
  t.deepEqual(seen, [
    ['dkim', false, []],
    ['spf', false, ['v=spf1 -all']],
    ['return_path', false, []],
    ['dmarc', false, []],
  ]);
  dns.set({ [dkim.name]: { TXT: [dkim.value] } });
  t.like(await verify(), { code: 0, status: 'verified', records: [{ ok: true, found: [dkim.value] }] });
  dns.set({ [dkim.name]: 'SERVFAIL' });
  const doubtful = await verify();
  t.like(doubtful, { code: 0, status: 'verified' });
  t.regex(doubtful.stderr, /example\.invalid stays verified: .*ESERVFAIL/);
  dns.set({ [dkim.name]: null });
  t.like(await verify(), { code: 1, status: 'pending' });

  const tracking = { opens: true, clicks: false, host: null };
  t.deepEqual(await json(`domain tracking ${ofAcme} --opens on`), { name: 'example.invalid', tracking });
  t.like(await json('domain list --org Acme'), [{ status: 'pending', verifiedAt: null, tracking }]);
  t.deepEqual((await json(`domain show ${ofAcme}`)).records, added.records);
  const host = 'links.example.invalid';
  t.like(await json(`domain tracking ${ofAcme} --clicks on --host ${host}`), {
    tracking: { opens: true, clicks: true, host },
  });
  const cname = { type: 'CNAME', name: host, value: 'mail.postern.invalid', purpose: 'tracking' };
  t.like((await json(`domain show ${ofAcme}`)).records[4], { ...cname, required: false });
  dns.set({ [dkim.name]: { TXT: [dkim.value] }, [host]: { CNAME: ['Mail.Postern.invalid'] } });
  t.like((await verify()).records[4], { ...cname, ok: true });
  t.is((await json(`domain tracking ${ofAcme} --host none`)).tracking.host, null);
  t.regex(await refusal(2, `domain tracking ${ofAcme} --host nonsense!`), /"nonsense!" is not a domain name/);
  await json(`domain remove ${ofAcme}`);
  t.regex(
    await refusal(1, `domain show ${ofAcme}`),
    /is not registered in Acme; `postern domain list --org Acme`/,
  );
});

test('credits: every change is in the ledger', async (t) => {
  const { json, refusal, acme } = await startCli(t);
  await json('credits quota Acme 20');
  await json('credits grant Acme 30');
  t.is((await json('credits grant Acme -5')).wallet, 25);
  t.regex(await refusal(1, 'credits grant Acme -26'), /has 25 credits, so 26 cannot be removed/);
  const shown = await json('credits show', acme.id);
  t.deepEqual(Object.keys(shown), ['quota', 'wallet', 'ledger']);
  t.deepEqual(Object.keys(shown.quota), ['limit', 'used', 'remaining', 'renewsAt']);
  t.like(shown, { wallet: 25, quota: { limit: 20, used: 0, remaining: 20 } });
  t.deepEqual(
    shown.ledger.map(({ at, ...entry }: { at: string }) => isIso.test(at) && entry),
    [
      { change: -5, reason: 'wallet', balance: 45 },
      { change: 30, reason: 'wallet', balance: 50 },
      { change: 20, reason: 'quota 20', balance: 20 },
      { change: 0, reason: 'quota unlimited', balance: 'unlimited' },
    ],
  );
});

const listOfThree =
  '\uFEFFemail,why\r\nann@there.invalid,x\r\n\r\n# old\r\n"Bob@there.invalid"\r\nANN@There.invalid\r\n';

test('suppression: added, imported, removed', async (t) => {
  const { json, cli, refusal, dataDir } = await startCli(t);
  const list = join(dataDir, 'list.csv');
  await writeFile(list, listOfThree);
  const added = await json('suppression add Ann@there.invalid --org Acme');
  t.deepEqual(added, { address: 'Ann@there.invalid', added: true });
  t.deepEqual(await json('suppression import --org Acme', list), {
    added: 1,
    before: 1,
    rejected: 0,
    rejectedLines: [],
  });
  await writeFile(list, 'email\nnobody\n');
  const faults = await refusal(1, 'suppression import --org Acme', list);
  t.regex(faults, /no email address in line 2 \("nobody"\); nothing was imported/);
  await appendFile(list, 'bob@there.invalid\r\n');
  const partly = await cli(`suppression import --org Acme ${list} --json`);
  t.is(partly.code, 0);
  t.like(JSON.parse(partly.stdout.toString()), {
    added: 0,
    before: 1,
    rejected: 1,
    rejectedLines: [{ line: 2, text: 'nobody' }],
  });
  t.regex(partly.stderr.toString(), /no email address in line 2 \("nobody"\); the others were imported/);
  t.like(await json('suppression list --org Acme'), [
    { address: 'Ann@there.invalid', reason: 'manual' },
    { address: 'Bob@there.invalid', reason: 'imported' },
  ]);
  await json('suppression remove ANN@there.invalid --org Acme');
  t.regex(
    await refusal(1, 'suppression remove ann@there.invalid --org Acme'),
    /is not on the suppression list of Acme/,
  );
});

/** Sends to one recipient of each fate, and waits until each has met it. */
async function sendAll(world: World) {
  const names = ['greylist', 'unknown', 'drop-after-dot', 'ann', 'dee'].map(
    (name) => `${name}@there.invalid`,
  );
  const { body } = await world.send({ to: [...names, 'eve@silent.invalid'], tags: { kind: 'welcome' } });
  const isThere = ({ status }: { status: string }) => !['queued', 'sending'].includes(status);
  await world.when(body.emailId, ({ recipients }) => recipients.every(isThere));
  return { names, emailId: body.emailId };
}

test('email: beside a running server, the story, the reason and the bytes', async (t) => {
  // Longer than the commands take, whose clock is the real one.
  const settings = { POSTERN_MTA_RETRY: '1h' };
  const world = await startWorld(t, { settings, zone: { 'silent.invalid': 'SERVFAIL' } });
  const { json, cli, refusal } = cliOf(t, world);
  await json('suppression add dee@there.invalid --org Tenant');
  const { emailId } = await sendAll(world);

  const { recipients: shown, ...rest } = await json('email show', emailId);
  const { success, recipients, ...telemetry } = await world.get(emailId);
  t.deepEqual(rest, telemetry);
  t.deepEqual(
    shown.map(({ attemptLog, ...recipient }: Record<string, unknown>) => recipient),
    recipients,
  );
  const [greylist, unknown, dropped, ann, dee, eve] = shown.map(
    (each: { attemptLog: object[] }) => each.attemptLog,
  );
  t.deepEqual(Object.keys(greylist[0]), [
    ...['number', 'startedAt', 'endedAt', 'outcome', 'category', 'fault', 'origin', 'diagnostic'],
    ...['possibleDuplicate', 'rule', 'response', 'mx', 'tls', 'transcript'],
  ]);
  t.like(greylist[0], {
    number: 1,
    outcome: 'deferred',
    mx: { host: 'mx1.invalid' },
    response: { code: 451 },
  });
  t.like(unknown[0], { outcome: 'bounced', category: 'unknown_user', fault: 'recipient' });
  t.like(dropped[0], { outcome: 'deferred', possibleDuplicate: true, response: null });
  const said = ({ from, text }: { from: string; text: string }) =>
    from === 'client' && /^RCPT TO:<ann@/.test(text);
  t.true(ann[0].transcript.some(said));
  t.deepEqual(dee, []);
  t.like(eve[0], { category: 'dns', mx: null, tls: null });

  const why = (await json('email why', emailId)).recipients;
  t.regex(
    why[0].why,
    /said "451 4\.7\.1 greylisted, try again" .* not final: the failure is on the remote side\. .* next attempt is due 2/,
  );
  t.regex(why[1].why, /said "550 5\.1\.1 no such mailbox" .* final, a hard bounce \(unknown_user\)/);
  t.regex(why[2].why, /Attempt 1 at mx1\.invalid .* may have arrived/);
  t.regex(why[3].why, /^Delivered .*: mx1\.invalid .* said "250 /);
  t.regex(why[4].why, /on the suppression list.*`postern suppression remove dee@there\.invalid --org /);
  t.regex(why[5].why, /^Attempt 1 failed: .* The next attempt is due 2/);
  t.deepEqual(why[1].evidence, unknown[0]);
  const plain = (await cli('email why', emailId)).stdout.toString();
  t.regex(plain, /^recipient\tgreylist@there\.invalid\tdeferred\tmx1\.invalid/);

  const copied = await world.send({
    to: 'ann@there.invalid',
    subject: 'Copied',
    cc: 'carl@there.invalid',
    bcc: 'fred@there.invalid',
  });
  const facts = (await cli('email show', copied.body.emailId)).stdout.toString();
  t.regex(facts, /^cc\tcarl@there\.invalid$/m);
  t.regex(facts, /^bcc\tfred@there\.invalid$/m);
  const readLog = () => json(`logs --email ${copied.body.emailId} --status accepted`);
  await until(async () => (await readLog()).length === 3, { what: 'the lines in the mail log' });
  const log = await readLog();
  t.deepEqual(
    log.map(({ recipient, kind }: Record<string, string>) => [recipient, kind]),
    [
      ['ann@there.invalid', undefined],
      ['carl@there.invalid', 'cc'],
      ['fred@there.invalid', 'bcc'],
    ],
  );
  t.true(log[2].msg.startsWith('accepted for <fred@there.invalid> (bcc) from '));

  const { stdout } = await cli('email source', emailId);
  t.deepEqual(stdout, world.mx[0]!.messages[0]!.raw);
  t.regex(await refusal(1, 'email show', uuid()), /no email with the id/);
  t.regex(await refusal(1, 'email source nonsense'), /no email with the id "nonsense"/);
});

test('queue: what waits; all of it on PostgreSQL, with the other reads', async (t) => {
  const world = await startWorld(t, { database: 'postgres', zone: { 'silent.invalid': 'SERVFAIL' } });
  const { json, cli } = cliOf(t, world);
  const list = join(world.config.dataDir, 'list.csv');
  await writeFile(list, 'dee@there.invalid\ndee@there.invalid\nDee@there.invalid\nzoe@there.invalid\n');
  t.like(await json('suppression import --org Tenant', list), { added: 2, before: 0 });
  const { names, emailId } = await sendAll(world);

  const summary = await json('queue summary');
  const counts = summary.map((each: Record<string, unknown>) => [each.domain, each.queued, each.deferred]);
  t.deepEqual(counts.sort(), [
    ['silent.invalid', 0, 1],
    ['there.invalid', 0, 2],
  ]);
  const waiting = async (filter: string) => {
    const entries: { recipient: string }[] = await json(`queue list${filter}`);
    return entries.map(({ recipient }) => recipient);
  };
  t.deepEqual(await waiting(''), [names[0], names[2], 'eve@silent.invalid']);
  t.deepEqual(await waiting(' --domain THERE.invalid --org Tenant --limit 1'), [names[0]]);
  t.deepEqual(await waiting(' --status bounced'), [names[1]]);

  t.is((await json('email show', emailId)).recipients[1].attemptLog[0].response.code, 550);
  t.deepEqual((await cli('email source', emailId)).stdout, world.mx[0]!.messages[0]!.raw);
  t.like(await json('credits show Tenant'), { quota: { used: 5 }, ledger: [{ change: -5 }, { change: 0 }] });
  const log = await json('logs --domain silent.invalid --org Tenant --email', emailId);
  const events = log.map(({ event }: { event: string }) => event);
  t.deepEqual(events, ['accepted', 'attempted', 'deferred']);
  const [accepted] = log;
  const story = await json('logs --id', emailId);
  for (const id of [accepted.requestId, accepted.messageId, accepted.deliveryId])
    t.deepEqual(await json('logs --id', id), story, id);
  t.true(story.length > log.length, 'the whole email, whichever of its ids');
  const top = await json('top');
  t.true(top.rates.accepted.minutes.length > 0);
  t.true(top.queue.destinations.some(({ total }: { total: number }) => total > 0));
  t.regex((await cli('top')).stdout.toString(), /^rate\taccepted\t\d+$/m);
});

function logLine(number: number, fields: object = {}): string {
  const line = { time: '2026-11-20T12:00:00.000Z', event: 'accepted', msg: `accepted line ${number}` };
  return `${JSON.stringify({ ...line, emailId: 'e', orgId: 'o', destination: 'there.invalid', ...fields })}\n`;
}

test('logs: the last lines, and what follows through a rotation', async (t) => {
  const dataDir = await directory(t);
  const { json, cli, start } = createCli(t, { POSTERN_DATA_DIR: dataDir });
  const { stdout: followed, exit } = start('logs', '-f', '-n', '2');
  const follows = (text: string) =>
    until(() => followed().includes(text), { what: () => `${text} in ${followed()}` });
  t.deepEqual(await json('logs'), [], 'no log yet');

  const file = mailLogFile(dataDir);
  await mkdir(join(dataDir, 'log'), { recursive: true });
  await writeFile(file, logLine(1) + logLine(2));
  await follows('line 2');
  await appendFile(file, logLine(3).slice(0, 20));
  await appendFile(file, logLine(3).slice(20));
  await rename(file, join(dataDir, 'log', '20261120-1200-01-mail.log'));
  await writeFile(file, logLine(4, { emailId: 'f', destination: 'else.invalid' }));
  await follows('line 4');
  const expected = [
    logLine(1),
    logLine(2),
    logLine(3),
    logLine(4, { emailId: 'f', destination: 'else.invalid' }),
  ];
  t.is((await exit()).stdout.toString(), expected.join(''), 'in a pipe the lines are those of the file');

  const inJson = (await json('logs -n 2')).map(({ msg }: { msg: string }) => msg);
  t.deepEqual(inJson, ['accepted line 3', 'accepted line 4'], 'the rotated file is read too');
  t.is((await cli('logs --domain there.invalid -n 9')).stdout.toString(), expected.slice(0, 3).join(''));
  t.is((await cli('logs --since 2026-11-20 --status accepted')).stdout.toString(), expected.join(''));
  t.deepEqual(await json('logs --status bounced'), []);
});

test('usage: help, the nearest command, the bad value, where --json may stand', async (t) => {
  const settings = { POSTERN_DATA_DIR: await directory(t), POSTERN_MTA_PORT: '2525' };
  const { cli, refusal } = createCli(t, settings);
  const bare = await cli('');
  t.is(bare.code, 0);
  t.regex(bare.stdout.toString(), /^Usage: postern /);
  t.is((await cli('org')).code, 2);
  t.regex(await refusal(2, 'ogr list'), /unknown command 'ogr'; did you mean org\?/);
  t.regex(await refusal(2, 'org create --nmae x'), /unknown option '--nmae'; did you mean --name\?/);
  t.regex(
    await refusal(2, 'org create'),
    /required option '--name <NAME>' .*; see `postern org create --help`/,
  );
  t.regex(
    await refusal(2, 'credits quota Acme lots'),
    /"lots" is not a quota; give a whole number, or "unlimited"/,
  );
  t.regex(await refusal(2, 'domain add --org x', 'a b'), /"a b" is not a domain name; give one such as/);

  const first = (await cli('--json config')).stdout.toString();
  t.is(first, (await cli('config --json')).stdout.toString());
  const port = JSON.parse(first).find(({ name }: { name: string }) => name === 'POSTERN_MTA_PORT');
  t.like(port, { value: 2525, source: 'environment' });
  const wrong = { ...settings, POSTERN_MTA_PORT: 'smtp', POSTERN_HTTP_PORT: 'x' };
  const bad = await createCli(t, wrong).cli('org list');
  t.is(bad.code, 1);
  t.deepEqual(bad.stderr.match(/^postern: POSTERN_(HTTP|MTA)_PORT: .* is not a port/gm)?.length, 2);
  const table = (await commandTable()).map(({ command }) => command);
  t.true(
    table.includes(
      'postern key create [--org ORG] --label L --scope S [--scope S]… [--domain D]… [--strict] [--no-strict] [--test]',
    ),
  );
});

test('a Node that is too old, or none, is named in one line', async (t) => {
  const place = await directory(t);
  await cp(join(root, 'scripts'), join(place, 'scripts'), { recursive: true });
  await mkdir(join(place, 'bin'));
  await symlink(join(place, 'scripts/postern'), join(place, 'bin/postern'));
  for (const tool of ['readlink', 'dirname']) await symlink(`/usr/bin/${tool}`, join(place, 'bin', tool));
  const say = (found: string) =>
    `postern needs Node 24 or newer; ${found}. Install it, or run \`npm ci\`, which brings one along.\n`;
  const env = { PATH: join(place, 'bin') };
  t.like(await run(join(place, 'bin/postern'), [], env), { code: 1, stderr: say('none was found') });
  await writeFile(join(place, 'bin/node'), '#!/bin/sh\necho v20.20.2\n');
  await chmod(join(place, 'bin/node'), 0o755);
  t.like(await run(join(place, 'bin/postern'), [], env), { code: 1, stderr: say('this is v20.20.2') });
  t.like(await run(join(place, 'scripts/start'), [], env), { code: 1, stderr: say('this is v20.20.2') });
});

test('a process of its own answers with the same bytes and codes as the function that the other tests call', async (t) => {
  const dataDir = await directory(t);
  await makeInstallation(dataDir);
  const [process, here] = [createProcessCli, createCli].map((create) =>
    create(t, { POSTERN_DATA_DIR: dataDir }),
  );
  for (const [command, code] of [
    ['--help', 0],
    ['org list --json', 0],
    ['org show Nobody', 1],
    ['org', 2],
  ] as const) {
    const answer = await process!.cli(command);
    t.is(answer.code, code, answer.stderr);
    t.deepEqual(await here!.cli(command), answer, command);
  }
});

test('a database that somebody else holds: who to look for, after a while', async (t) => {
  const dataDir = await directory(t);
  await makeInstallation(dataDir);
  const { json, refusal } = createCli(t, { POSTERN_DATA_DIR: dataDir });
  const other = await openDatabase({ dataDir, databaseUrl: null });
  await other.transaction(async () => {
    t.regex(
      await refusal(1, 'org create --name Other'),
      /database is locked; another program has locked the database: `fuser`/,
    );
  });
  await other.destroy();
  await json('org create --name Other');
});

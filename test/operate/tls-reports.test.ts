/** TLS reports (RFC 8460): sessions are counted with the outcomes, and reported once, the next day, by mail and by https. */
import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createMigrated, type DatabaseKind, journeyKinds } from '#lab/database/databases.ts';
import { verifyDkim } from '#lab/dkim.ts';
import { startDns } from '#lab/dns/dns.ts';
import { queueEmpty } from '#lab/load/reconciliation.ts';
import { authorizedPem, policy, startPolicyHost, trustAuthority } from '#lab/mx/policy-host.ts';
import { sharedSecret, startNode } from '#lab/scenes/nodes.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import { countTlsSessions, dayMs, reportTime } from '#mail/queue/rows/tls-sessions.ts';
import type { TlsReport } from '#mail/returned/aggregate-report.ts';
import { parseMail } from '#mail/returned/parse/parsed-mail.ts';
import { readReport } from '#mail/returned/reports/domain-report.ts';
import { readTls } from '#mail/returned/reports/tls-report.ts';
import { createPoster } from '#mail/webhooks/guarded-post.ts';
import { reportAddresses } from '#operate/tls-reports/report-addresses.ts';
import { sendTlsReports } from '#operate/tls-reports/send-tls-reports.ts';
import { openDatabase } from '#platform/database/engine/open.ts';
import type { Attempt } from '#platform/values/glossary.ts';

trustAuthority();

/** Takes reports by https where the policies are. */
function createCollector() {
  const posted: { type: string | undefined; body: string }[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    posted.push({ type: request.headers['content-type'], body });
    response.writeHead(201).end();
  };
  return { posted, answer };
}

/** right.invalid keeps its MTA-STS policy; testing.invalid has one in mode testing, and a self-signed certificate. */
async function startScene(t: ExecutionContext, database: DatabaseKind) {
  const collector = createCollector();
  const policies = await startPolicyHost({
    'right.invalid': policy('enforce', ['mx1.invalid']),
    'testing.invalid': policy('testing', ['mx2.invalid']),
    '/tls': collector.answer,
  });
  t.teardown(policies.close);
  const world = await startWorld(t, {
    database,
    exchangers: [{ pem: authorizedPem }, {}, {}],
    settings: {
      ...sharedSecret,
      POSTERN_TLS_REPORTS: 'Acme Mail <tls@sender.invalid>',
    },
    overrides: { policyPort: policies.port },
    zone: {
      'there.invalid': { MX: ['10 mx3.invalid'] },
      'right.invalid': { MX: ['10 mx1.invalid'] },
      '_mta-sts.right.invalid': { TXT: ['v=STSv1; id=1;'] },
      'mta-sts.right.invalid': { A: ['127.0.0.1'] },
      '_smtp._tls.right.invalid': {
        TXT: [
          `v=TLSRPTv1; rua=mailto:tls@there.invalid,https://mta-sts.right.invalid:${policies.port}/tls,https://mta-sts.right.invalid:${policies.port + 1}/no`,
        ],
      },
      'testing.invalid': { MX: ['10 mx2.invalid'] },
      '_mta-sts.testing.invalid': { TXT: ['v=STSv1; id=1;'] },
      'mta-sts.testing.invalid': { A: ['127.0.0.1'] },
      '_smtp._tls.testing.invalid': { TXT: ['v=TLSRPTv1; rua=mailto:rua@there.invalid'] },
    },
  });
  return { world, collector, policyPort: policies.port };
}

for (const kind of journeyKinds) {
  test(`a day is counted, and reported once the next day, whatever the number of nodes: ${kind}`, async (t) => {
    const { world, collector, policyPort } = await startScene(t, kind);
    if (kind === 'postgres') await startNode(t, world, {}, { policyPort });
    const send = async (to: string) => {
      const { body } = await world.send({ to, subject: to });
      await world.when(body.emailId, ({ status }) => status === 'delivered');
    };
    for (const name of ['ann', 'bob', 'eve']) await send(`${name}@right.invalid`);
    await send('ann@testing.invalid');
    // No report is wanted for this one.
    await send('ann@there.invalid');
    const rows = await world.db('tls_results').orderBy('domain').select('*');
    t.deepEqual(
      rows.map(({ domain, policy: type, host, failure }) => [domain, type, host, failure]),
      [
        ['right.invalid', 'sts', '', ''],
        ['testing.invalid', 'sts', 'mx2.invalid', 'certificate-not-trusted'],
        ['there.invalid', 'no-policy-found', '', ''],
      ],
    );
    const before = world.mx[2]!.messages.length;
    const day = Math.floor(world.clock.now() / dayMs);
    await world.clock.advance((day + 2) * dayMs - world.clock.now());
    // Two nodes that take the two reports at once do not see that both domains name the address, and try again after an hour.
    const isSent = async () => (await world.db('tls_results').where({ day })).length === 0;
    await until(async () => (await world.clock.advance('10m')) ?? (await isSent()), {
      what: 'the reports to be sent',
    });
    // A leap of the clock in the middle of a delivery may end its lease, and the mail arrives twice.
    const reports = () => {
      const mails = world.mx[2]!.messages.slice(before);
      return [
        ...new Map(mails.map((mail) => [/^Message-ID: .*/m.exec(mail.raw.toString())![0], mail])).values(),
      ];
    };
    await world.clock.passUntil(() => reports().length >= 2, { what: 'the reports by mail' });

    const byMail = new Map(reports().map((message) => [message.to[0], message]));
    t.deepEqual([...byMail.keys()].sort(), ['rua@there.invalid', 'tls@there.invalid']);
    const { raw } = byMail.get('rua@there.invalid')!;
    t.like((await verifyDkim(raw, world.dns))[0], { domain: 'sender.invalid', result: 'pass' });
    const text = raw.toString();
    t.regex(text, /^TLS-Report-Domain: testing\.invalid\r$/m);
    t.regex(text, /^TLS-Report-Submitter: sender\.invalid\r$/m);
    t.regex(text, /^Content-Type: multipart\/report; report-type="?tlsrpt"?/m);
    const read = await readReport(await parseMail(raw, false));
    t.like(read, {
      kind: 'report',
      report: {
        kind: 'tls',
        domain: 'testing.invalid',
        reporter: 'Acme Mail',
        policy: 'sts',
        beginsAt: day * dayMs,
        totals: { sessions: 1, failed: 1 },
        failures: [{ type: 'certificate-not-trusted', sessions: 1, host: 'mx2.invalid' }],
      },
    });

    t.is(collector.posted.length, 1);
    const { type, body } = collector.posted[0]!;
    t.is(type, 'application/tlsrpt+json');
    const posted = readTls(body) as TlsReport;
    t.like(posted, { domain: 'right.invalid', policy: 'sts', failures: [] });
    // Mails share connections, and one may find the connection of the last one not back yet.
    const sessions = world.mx[0]!.sessions.filter(({ commands }) =>
      commands.some((line) => line.includes('@right.invalid>')),
    );
    t.is(posted.totals.sessions, sessions.length);
    t.deepEqual(JSON.parse(body).policies[0].policy['mx-host'], ['mx1.invalid']);

    await queueEmpty(world.db, 30_000);
    // Neither a second report, nor one about the reports.
    await world.clock.advance('49h');
    t.is(reports().length, 2);
    t.is(collector.posted.length, 1);
    // What was sent, and where, is forgotten as well.
    await world.clock.passUntil(async () => (await world.db('tls_results')).length === 0, {
      what: 'nothing to be left',
    });
  });
}

/** Reports of one day on these domains, by what their records say. Each answer is the addresses that got one. */
async function reportsOn(t: ExecutionContext, records: Record<string, string>): Promise<string[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-'));
  const { url: databaseUrl } = await createMigrated('sqlite', dataDir);
  const db = await openDatabase({ dataDir, databaseUrl });
  t.teardown(async () => {
    await db.destroy();
    await rm(dataDir, { recursive: true });
  });
  const zone = Object.fromEntries(
    Object.entries(records).map(([domain, rua]) => [
      `_smtp._tls.${domain}`,
      { TXT: [`v=TLSRPTv1; rua=${rua}`] },
    ]),
  );
  const dns = await startDns(zone);
  t.teardown(dns.close);
  const resolve = createResolver([dns.address]);
  const poster = createPoster({ resolve, allowPrivate: false, timeoutMs: 300_000 });
  t.teardown(poster.close);
  const endedAt = 100 * dayMs;
  const session = {
    policy: 'no-policy-found',
    policyText: [],
    host: '',
    failure: null,
    address: null,
    source: null,
    reason: null,
  };
  const attempt = { tlsSessions: [session], endedAt } as unknown as Attempt;
  await db.transaction((trx) =>
    countTlsSessions(
      trx,
      Object.keys(records).map((domain) => ({ domain, attempt })),
    ),
  );
  const took: string[] = [];
  let now = endedAt + 2 * dayMs;
  const run = sendTlsReports({
    db,
    now: () => now,
    resolve,
    httpsPort: 443,
    sender: { name: '', address: 'tls@sender.invalid', domain: 'sender.invalid' },
    from: 'tls@sender.invalid',
    findSenderOrg: async () => 'org',
    accept: async ({ to }) => took.push(to),
    post(request) {
      return poster.post(request, AbortSignal.timeout(300_000));
    },
    onError: (what, error) => took.push(`${what}: ${(error as Error).message}`),
  });
  for (const _ of Array(Math.ceil(Object.keys(records).length / 10))) await run();
  // Some wait for another domain that names the same one.
  now += 3_600_000;
  for (const _ of Array(Math.ceil(Object.keys(records).length / 10))) await run();
  return took.sort();
}

const victim = 'mailto:ann@victim.invalid';

test('a report goes to the domain itself, one above it, or one that several domains name', async (t) => {
  t.deepEqual(await reportsOn(t, { 'a.invalid': victim }), [], 'one stranger names it');
  t.deepEqual(
    await reportsOn(t, { 'a.invalid': victim, 'b.a.invalid': victim, 'c.b.a.invalid': victim }),
    [],
    'so do all names of one owner',
  );
  t.deepEqual(
    await reportsOn(t, {
      'a.invalid': 'mailto:tls@a.invalid',
      'x.b.invalid': 'mailto:tls@b.invalid',
      'c.invalid': 'mailto:tls@x.c.invalid',
      'd.co.uk': 'mailto:tls@co.uk,mailto:tls@e.co.uk',
    }),
    ['tls@a.invalid', 'tls@b.invalid'],
  );
  const service = 'mailto:rua@service.invalid';
  t.deepEqual(await reportsOn(t, { 'a.invalid': service, 'b.invalid': service }), [
    'rua@service.invalid',
    'rua@service.invalid',
  ]);
});

test('an address has one report a day for all names of an owner, and ten in all; a domain a hundred', async (t) => {
  const names = Object.fromEntries(
    Array.from({ length: 12 }, (_, n) => [`n${n}.a.invalid`, 'mailto:tls@a.invalid']),
  );
  t.deepEqual(await reportsOn(t, names), ['tls@a.invalid']);
  const strangers = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`s${n}.invalid`, victim]));
  const toOne = (await reportsOn(t, strangers)).length;
  t.true(toOne > 0 && toOne <= 10, `${toOne} to one address`);
  const many = Object.fromEntries(
    Array.from({ length: 40 }, (_, n) => [
      `m${n}.invalid`,
      Array.from({ length: 4 }, (_, one) => `mailto:a${n}.${one}@victim.invalid`).join(),
    ]),
  );
  const toDomain = (await reportsOn(t, many)).length;
  t.true(toDomain >= 80 && toDomain <= 100, `${toDomain} to one domain`);
});

test('https is on port 443 only, and never private, whatever the record says', async (t) => {
  const got = await reportsOn(t, {
    'port.invalid': 'https://collector.invalid:8443/x,https://collector.invalid:25/x',
    'user.invalid': 'https://a:b@collector.invalid/x',
    'loop.invalid': 'https://127.0.0.1/x',
    'six.invalid': 'https://[::1]/x',
    'number.invalid': 'https://2130706433/x',
    'name.invalid': 'https://localhost/x',
  });
  t.is(got.length, 8, 'four are tried, twice');
  for (const line of got) t.regex(line, /private|not reach|forbidden|special/);
});

test('the random hour is that of the next day', (t) => {
  for (const domain of ['a.invalid', 'b.invalid', 'c.invalid']) {
    const hour = (reportTime(10, domain) - 11 * dayMs) / 3_600_000;
    t.true(hour >= 1 && hour <= 21);
  }
  t.not(reportTime(10, 'a.invalid'), reportTime(10, 'b.invalid'));
});

test('where reports go: one record, mail and https, a few of them', (t) => {
  const of = (...records: string[]) => reportAddresses(records);
  const mail = (address: string) => ({ kind: 'mail' as const, address });
  t.deepEqual(of('v=TLSRPTv1; rua=mailto:a@b.example , https://c.example/x'), [
    mail('a@b.example'),
    { kind: 'https', url: 'https://c.example/x' },
  ]);
  t.deepEqual(of('v=TLSRPTv1;rua=mailto:a%2Bb@c.example;'), [mail('a+b@c.example')]);
  t.deepEqual(of('v=TLSRPTv1; rua=http://c.example/x,ftp://x,mailto:nobody,mailto:%0a@c.example'), []);
  t.deepEqual(of('v=spf1 -all'), []);
  t.deepEqual(of('v=TLSRPTv1; rua=mailto:a@b.example', 'v=TLSRPTv1; rua=mailto:c@b.example'), []);
  t.is(of(`v=TLSRPTv1; rua=${Array(9).fill('mailto:a@b.example').join()}`).length, 4);
});

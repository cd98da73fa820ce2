/** TLS reports (RFC 8460): sessions are counted with the outcomes, and reported once, the next day, by mail and by https. */
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { parseMail } from '../../src/bounces/parse/parsed-mail.ts';
import { readReport } from '../../src/bounces/reports/domain-report.ts';
import { readTls, type TlsReport } from '../../src/bounces/reports/tls-report.ts';
import { dayMs, reportTime } from '../../src/db/queue/tls-results.ts';
import { reportAddresses } from '../../src/operate/tls-reports/report-addresses.ts';
import { type DatabaseKind, kinds } from '../lab/database/databases.ts';
import { verifyDkim } from '../lab/dkim.ts';
import { authorizedPem, policy, startPolicyHost, trustAuthority } from '../lab/mx/policy-host.ts';
import { sharedSecret, startNode } from '../lab/scenes/nodes.ts';
import { startWorld } from '../lab/scenes/world.ts';

trustAuthority();

async function startCollector(t: ExecutionContext) {
  const posted: { type: string | undefined; body: string }[] = [];
  const server = createServer({ cert: authorizedPem, key: authorizedPem }, async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    posted.push({ type: request.headers['content-type'], body });
    response.writeHead(201).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.closeAllConnections());
  t.teardown(() => server.close());
  return { posted, port: (server.address() as AddressInfo).port };
}

/** right.invalid keeps its MTA-STS policy; testing.invalid has one in mode testing, and a self-signed certificate. */
async function startScene(t: ExecutionContext, database: DatabaseKind) {
  const collector = await startCollector(t);
  const policies = await startPolicyHost({
    'right.invalid': policy('enforce', ['mx1.invalid']),
    'testing.invalid': policy('testing', ['mx2.invalid']),
  });
  t.teardown(policies.close);
  const world = await startWorld(t, {
    database,
    exchangers: [{ pem: authorizedPem }, {}, {}],
    settings: {
      ...sharedSecret,
      POSTERN_TLS_REPORTS: 'Acme Mail <tls@sender.invalid>',
      POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true',
    },
    overrides: { policyPort: policies.port },
    zone: {
      'there.invalid': { MX: ['10 mx3.invalid'] },
      'right.invalid': { MX: ['10 mx1.invalid'] },
      '_mta-sts.right.invalid': { TXT: ['v=STSv1; id=1;'] },
      'mta-sts.right.invalid': { A: ['127.0.0.1'] },
      '_smtp._tls.right.invalid': {
        TXT: [`v=TLSRPTv1; rua=mailto:tls@there.invalid,https://mta-sts.right.invalid:${collector.port}/tls`],
      },
      'testing.invalid': { MX: ['10 mx2.invalid'] },
      '_mta-sts.testing.invalid': { TXT: ['v=STSv1; id=1;'] },
      'mta-sts.testing.invalid': { A: ['127.0.0.1'] },
      '_smtp._tls.testing.invalid': { TXT: ['v=TLSRPTv1; rua=mailto:rua@there.invalid'] },
    },
  });
  return { world, collector };
}

for (const kind of kinds) {
  test(`a day is counted, and reported once the next day, whatever the number of nodes: ${kind}`, async (t) => {
    const { world, collector } = await startScene(t, kind);
    if (kind === 'postgres') await startNode(t, world);
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
    await world.clock.passUntil(async () => (await world.db('tls_results').where({ day })).length === 0, {
      what: 'the reports to be sent',
    });
    const reports = () => world.mx[2]!.messages.slice(before);
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
      is: 'report',
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

    // Neither a second report, nor one about the reports.
    await world.clock.advance('49h');
    t.is(reports().length, 2);
    t.is(collector.posted.length, 1);
    t.deepEqual(await world.db('tls_results'), []);
  });
}

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

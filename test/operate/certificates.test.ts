/** Certificates by ACME as the operator sees them: status, doctor, the command and the metrics say the same. */
import test from 'ava';
import { createCli } from '#lab/cli.ts';
import { kinds } from '#lab/database/databases.ts';
import { openQueue } from '#lab/database/queue-rows.ts';
import {
  beginWith,
  claimDueHost,
  type HostPurpose,
  listCertificates,
  recordFailure,
  recordIssued,
  wantHosts,
} from '#operate/certificates/rows/certificates-table.ts';
import { examine } from '#operate/doctor/examine.ts';
import { setCertificates } from '#operate/metrics/certificate-metrics.ts';
import { createMetrics } from '#operate/metrics/metrics.ts';
import { readStatus } from '#operate/status/read-status.ts';
import { loadConfig } from '#platform/settings/config.ts';

const day = 86_400_000;

for (const kind of kinds) {
  test(`${kind}: a certificate's age, expiry and last failure with its cure, from every view`, async (t) => {
    const { db, settings } = await openQueue(t, kind);
    const now = Date.now();
    const environment = { ...settings, POSTERN_ACME: 'a@b.invalid', POSTERN_HOSTNAME: 'mail.test.invalid' };
    const config = loadConfig(environment);
    const row = async (host: string, purpose: HostPurpose, days: number | null, type?: string) => {
      await wantHosts(db, [{ host, purpose, orgId: null }], now);
      const validity = { notBefore: now - 80 * day, notAfter: now + (days ?? 0) * day };
      const issued = { chain: 'c', privateKey: 'k', ...validity, attemptAt: now + day };
      if (days !== null) await recordIssued(db, host, issued, now);
      if (type === undefined) return;
      const problem = { type, text: `${type} failed`, at: now };
      const failed = { problem, failures: 1, attemptAt: now + 3_600_000 };
      await recordFailure(db, { host, failingSince: null }, failed);
    };
    await row('mail.test.invalid', 'server', null, 'connection');
    await row('fine.test.invalid', 'server', 40);
    await row('late.test.invalid', 'tracking', 5, 'authority');
    await row('early.test.invalid', 'tracking', 25, 'rateLimited');
    await row('away.test.invalid', 'tracking', null, 'dns-elsewhere');
    await row('gone.test.invalid', 'tracking', -1, 'caa');
    await row('mta-sts.test.invalid', 'mta-sts', null, 'dns-none');
    await row('new.test.invalid', 'tracking', null);

    const { needs } = await readStatus({ db, config, now, served: true });
    t.deepEqual(
      needs.map(({ cause, subject, severity, command }) => [cause, subject, severity, command]).sort(),
      [
        ['certificate', 'away.test.invalid', 'watch', 'postern certificate retry away.test.invalid'],
        ['certificate', 'early.test.invalid', 'watch', 'postern certificate list'],
        ['certificate', 'gone.test.invalid', 'watch', 'postern certificate retry gone.test.invalid'],
        ['certificate', 'late.test.invalid', 'act', 'postern certificate retry late.test.invalid'],
        ['certificate', 'mail.test.invalid', 'act', 'postern certificate retry mail.test.invalid'],
      ],
    );
    const own = needs.find(({ subject }) => subject === 'mail.test.invalid')!;
    t.is(own.figure, 'connection failed');
    t.regex(
      own.advice,
      /^Let the authority connect to ports 80 and 443 .* firewalls\. The next attempt is in 1 hour\.$/,
    );
    t.is(
      needs.find(({ subject }) => subject.startsWith('late'))!.figure,
      '80 days old, valid for 5 days more; authority failed',
    );

    const { cli, json } = createCli(t, environment);
    const listed: { host: string; state: string; expiresAt: string | null }[] =
      await json('certificate list');
    t.deepEqual(
      listed.map(({ host, state }) => `${host} ${state}`),
      [
        'mail.test.invalid failing',
        'fine.test.invalid valid',
        'gone.test.invalid expired',
        'late.test.invalid valid',
        'early.test.invalid valid',
        'away.test.invalid failing',
        'new.test.invalid waiting',
        'mta-sts.test.invalid unused',
      ],
    );
    t.is(listed[1]!.expiresAt, new Date(now + 40 * day).toISOString());
    t.is(await claimDueHost(db, { now: now - 1, until: now }), null);
    t.is((await cli('certificate retry Away.test.invalid')).code, 0);
    const claim = async () => (await claimDueHost(db, { now: Date.now(), until: now + day }))?.host;
    t.deepEqual([await claim(), await claim()].sort(), ['away.test.invalid', 'new.test.invalid']);
    const unknown = await cli('certificate retry other.invalid');
    t.regex(unknown.stderr, /there is no host "other\.invalid"; `postern certificate list` lists them/);

    const { registry, meters } = createMetrics('1', t.fail);
    setCertificates(meters, await listCertificates(db, { now, limit: 20 }));
    const text = await registry.metrics();
    t.regex(
      text,
      /postern_certificate_failing_since_seconds\{host="mail\.test\.invalid",type="connection"\} \d{10}/,
    );
    t.regex(text, /postern_certificate_expires_seconds\{host="fine\.test\.invalid"\} \d{10}/);
    t.notRegex(text, /mta-sts/);

    const findings = await examine({
      config,
      now: () => now,
      openDb: async () => db,
      domain: null,
      surroundings: { probes: ['probe.invalid'], timeServers: [], blocklists: [] },
    });
    const checks = findings.filter(({ check, subject }) => check === 'certificate' && subject.includes('.'));
    t.deepEqual(
      checks.map(({ subject, verdict }) => `${subject} ${verdict}`),
      [
        'mail.test.invalid failure',
        'fine.test.invalid ok',
        'gone.test.invalid warning',
        'late.test.invalid failure',
        'early.test.invalid warning',
        'away.test.invalid warning',
        'new.test.invalid skipped',
        'mta-sts.test.invalid skipped',
      ],
    );
  });
}

for (const kind of kinds) {
  test(`${kind}: a host that is not wanted is no need, and a corrected setting is tried at the start of the server`, async (t) => {
    const { db, settings } = await openQueue(t, kind);
    const now = Date.now();
    const config = loadConfig({ ...settings, POSTERN_ACME: 'a@b.invalid', POSTERN_HOSTNAME: 'new.invalid' });
    const needs = async () =>
      (await readStatus({ db, config, now, served: true })).needs.map(({ subject }) => subject);
    const fail = async (host: string, wantedAt: number) => {
      await wantHosts(db, [{ host, purpose: 'server', orgId: null }], wantedAt);
      const problem = { type: 'unauthorized', text: 'no', at: now, settings: 'old' };
      await recordFailure(
        db,
        { host, failingSince: null },
        { problem, failures: 1, attemptAt: now + 3_600_000 },
      );
    };
    await fail('old.invalid', now);
    await fail('new.invalid', now);
    t.deepEqual((await needs()).sort(), ['new.invalid', 'old.invalid']);
    await beginWith(db, { own: ['new.invalid'], settings: 'old', isAlone: true, now });
    t.deepEqual(await needs(), ['new.invalid']);
    const due = () => claimDueHost(db, { now, until: now + day });
    t.is(await due(), null, 'the settings are the same');
    await beginWith(db, { own: ['new.invalid'], settings: 'corrected', isAlone: true, now });
    t.is((await due())?.host, 'new.invalid');

    await fail('other-node.invalid', now);
    await fail('left.invalid', now - 3 * 3_600_000);
    await beginWith(db, { own: ['new.invalid'], settings: 'old', isAlone: false, now });
    t.deepEqual((await needs()).sort(), ['new.invalid', 'other-node.invalid'], 'other nodes have their own');
  });
}

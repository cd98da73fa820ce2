/** `postern doctor` as its users have it: exit codes, forms, and a machine without a network. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import test from 'ava';
import { doctorBlocks } from '#cli/render/doctor-view.ts';
import { createCli } from '#lab/cli.ts';
import { startUpdateServer } from '#lab/dns/update-server.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { dkimDomain, startDoctorWorld } from '#lab/scenes/doctor-world.ts';
import type { Finding } from '#operate/doctor/finding.ts';

const real = { 'gmail.com': 'big', 'outlook.com': 'big', 'yahoo.com': 'large', 'icloud.com': 'large' };

test('a machine that can send: exit 0, a line for each check; a failure: exit 1; one domain by its name', async (t) => {
  const { dns, settings, domain } = await startDoctorWorld(t);
  for (const [name, host] of Object.entries(real)) dns.set({ [name]: { MX: [`10 in.${host}.invalid`] } });
  dns.set({ 'ietf.org': { A: ['192.0.2.1'], secure: true } });
  // Whatever serves port 25 of this machine, or how full its disk is, is no concern of the test.
  const ours = { POSTERN_MIN_FREE_SPACE: '0', POSTERN_INBOUND_PORT: 'off' };
  const { cli, json } = createCli(t, { ...settings, ...ours });

  const good = await json('doctor');
  t.deepEqual(Object.keys(good), ['ok', 'counts', 'findings']);
  t.true(good.ok);
  t.is(good.counts.failure, 0);
  const findings: Finding[] = good.findings;
  t.deepEqual(Object.keys(findings[0]!), ['check', 'subject', 'verdict', 'found', 'advice', 'records']);
  const port = findings.find(({ check }) => check === 'port 25');
  t.like(port, { verdict: 'ok', subject: 'this server' });
  t.like(findings.find(({ check }) => check === 'DKIM')!, { verdict: 'ok', subject: dkimDomain });
  t.like(findings.find(({ check }) => check === 'database')!, { verdict: 'ok' });

  const dkim = `${domain.dkimSelector}._domainkey.${dkimDomain}`;
  dns.set({ [dkim]: null });
  const bad = await cli('doctor Sender.INVALID');
  t.deepEqual([bad.code, bad.stderr], [1, '']);
  const lines = bad.stdout.toString().trimEnd().split('\n');
  t.is(lines.length, findings.length);
  t.deepEqual(
    lines.filter((line) => line.startsWith('failure\t')).map((line) => line.split('\t')),
    [
      [
        ...['failure', dkimDomain, 'DKIM', `no TXT record at ${dkim}`, 'publish it'],
        `TXT ${dkim} v=DKIM1; k=rsa; p=${domain.dkimPublicKey}`,
      ],
    ],
  );
  const secret = Buffer.from('a secret of an update key');
  const server = await startUpdateServer({ zone: dkimDomain, key: { name: 'postern', secret } });
  t.teardown(() => server.close());
  const fixing = createCli(t, {
    ...settings,
    ...ours,
    POSTERN_DNS_UPDATE_SERVER: `127.0.0.1:${server.port}`,
    POSTERN_DNS_UPDATE_KEY: `postern:${secret.toString('base64')}`,
  });
  t.regex((await fixing.cli('doctor Sender.INVALID --fix')).stderr, /write 1 record at .*add --yes/);
  const { published } = JSON.parse(
    (await fixing.cli('doctor Sender.INVALID --fix --yes --json')).stdout.toString(),
  );
  t.like(published[0], { action: 'add', name: dkim, problem: null });
  t.deepEqual([...server.records], [`TXT ${dkim} v=DKIM1; k=rsa; p=${domain.dkimPublicKey}`]);

  const stranger = await cli('doctor stranger.invalid --json');
  t.is(stranger.code, 1);
  t.like(JSON.parse(stranger.stdout.toString()).findings.at(-1), { check: 'registered', verdict: 'failure' });
  t.is((await cli('doctor not/a/domain')).code, 2);
});

test('without a network and before the first start: an answer, exit 1, and nothing is made', async (t) => {
  const dataDir = join(await temporaryDirectory(t), 'data');
  const { cli } = createCli(t, { POSTERN_DATA_DIR: dataDir, POSTERN_DNS_SERVERS: '127.0.0.1:9' });
  const { code, stdout, stderr } = await cli('doctor --json');
  t.deepEqual([code, stderr], [1, '']);
  const { ok, findings } = JSON.parse(stdout.toString());
  t.false(ok);
  const failures = findings.filter(({ verdict }: Finding) => verdict === 'failure');
  t.deepEqual(
    failures.map(({ check, found }: Finding) => [check, found]),
    [['servers', 'no answer from DNS server 127.0.0.1:9: nothing listens there']],
  );
  t.false(existsSync(dataDir));
});

test('on a terminal: under each subject, wrapped, and the record as it is to be pasted', (t) => {
  const value = `v=DKIM1; k=rsa; p=${'A'.repeat(300)}`;
  const findings: Finding[] = [
    { check: 'disk', subject: 'here', verdict: 'ok', found: 'fast', advice: null, records: [] },
    {
      check: 'DKIM',
      subject: 'a.invalid',
      verdict: 'failure',
      found: 'nothing \x1b[31m there',
      advice: 'publish it, '.repeat(12).trim(),
      records: [{ type: 'TXT', name: 'x.a.invalid', value }],
    },
    { check: 'port', subject: 'here', verdict: 'skipped', found: 'not known', advice: null, records: [] },
  ];
  const [block] = doctorBlocks(findings, 60);
  const lines = (block as { lines: string[] }).lines.map(stripVTControlCharacters);
  t.deepEqual(lines.slice(0, 6), [
    'here',
    '  ✓ ok       disk  fast',
    '  - skipped  port  not known',
    '',
    'a.invalid',
    '  ✗ failure  DKIM  nothing \\x1b[31m there',
  ]);
  t.true(lines.some((line) => line.trim() === value));
  t.true(lines.every((line) => line.length <= 60 || line.trim() === value));
  t.is(lines.at(-1), 'Not ready to send (1 failure, 1 ok, 1 skipped)');
});

/** `postern doctor` on the machine itself: when one thing alone is wrong, exactly that is named. */
import { chmod, copyFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava from 'ava';
import { listOrganizations } from '#accounts/rows/organizations.ts';
import { type Change, names } from '#lab/scenes/doctor-names.ts';
import { type DoctorWorld, hostname, startDoctorWorld } from '#lab/scenes/doctor-world.ts';
import { table } from '#lab/table.ts';
import { assignPool } from '#mail/queue/rows/ip-pools.ts';
import { checkCertificate } from '#operate/doctor/checks/certificate.ts';
import type { Finding } from '#operate/doctor/finding.ts';
import { realSurroundings } from '#operate/doctor/surroundings.ts';
import type { Db } from '#platform/database/engine/open.ts';

/** Each world is a few servers; many of them at once would keep each other waiting. */
const test = ava.serial;

const machine = 'this server';

type Row = [
  title: string,
  otherwise: Record<string, unknown>,
  check: string,
  verdict: Finding['verdict'],
  found: RegExp,
  advice?: RegExp,
];

for (const [title, otherwise, check, verdict, found, advice] of table<Row>('operate/doctor-machine')) {
  const { aheadMs, syncTimes, freeBytes, openFiles, ...config } = otherwise;
  const measured = Object.entries({ syncTimes, freeBytes, openFiles }).filter(
    ([, value]) => value !== undefined,
  );
  const surroundings = Object.fromEntries(measured.map(([name, value]) => [name, async () => value]));
  const wrong = ({ time }: DoctorWorld) => {
    if (aheadMs !== undefined) Object.assign(time, { aheadMs });
    return { config, surroundings };
  };
  names(title, wrong, { check, subject: machine, verdict, found, advice });
}

test('a database that cannot be used', async (t) => {
  const { changed, surroundings } = await startDoctorWorld(t);
  const timeouts = { ...surroundings.timeouts!, database: 300 };
  const noticesFrom = { name: '', address: 'postern@sender.invalid', domain: 'sender.invalid' };
  const refused = async () => {
    throw new Error('the database of POSTERN_DATABASE_URL cannot be used: ECONNREFUSED; check that it runs');
  };
  for (const [openDb, found] of [
    [refused, /ECONNREFUSED$/],
    [() => new Promise<Db>(() => {}), /did not answer within 0.3 s$/],
  ] as const) {
    const all = await changed({ config: { noticesFrom }, openDb, surroundings: { timeouts } });
    const [database, ...rest] = all;
    t.like(database, { check: 'database', verdict: 'failure' });
    t.regex(database!.found, found);
    t.regex(database!.advice!, /^check/);
    // What is in it is not known now: the secret opens nothing, the domain's findings are gone.
    const skippedOnes = rest.filter(({ verdict }) => verdict === 'skipped');
    t.deepEqual(
      skippedOnes.map(({ check, found: why }) => [check, why]),
      [
        ['server', 'not known: the database cannot be read'],
        ['source addresses', 'not known: the database cannot be read'],
        ['blocklists named in replies', 'not known: the database cannot be read'],
        ['one-click unsubscribe', 'not known: the database cannot be read'],
        ['auto-pauses', 'not known: the database cannot be read'],
        ['feedback loops', 'not known: the database cannot be read'],
        ['notices', 'not known: the database cannot be read'],
        ['registered', 'not known: the database cannot be read'],
      ],
    );
    t.false(rest.some(({ verdict }) => verdict === 'failure'));
  }
});

names('a secret that others may read', ({ dataDir }) => chmod(join(dataDir, 'secret'), 0o640), {
  check: 'secret key',
  subject: machine,
  verdict: 'failure',
  found: /can be read by other users \(0640\)$/,
  advice: /^chmod 600 /,
});

names('another secret', ({ dataDir }) => writeFile(join(dataDir, 'secret'), `${'x'.repeat(40)}\n`), {
  check: 'secret key',
  subject: machine,
  verdict: 'failure',
  found: /cannot decrypt 1 of the 1 keys in the database$/,
  advice: /restore the secret/,
});

names(
  'an organization that is pinned to a pool that no node has',
  async ({ db }) => assignPool(db, (await listOrganizations(db))[0]!.id, 'bulk'),
  {
    check: 'source addresses',
    subject: machine,
    verdict: 'failure',
    found: /^1 organization or stream sends from bulk, but no running node/,
    advice: /192\.0\.2\.10@bulk/,
  },
);

names(
  'a disk that cannot be written',
  () => ({
    surroundings: { syncTimes: async () => Promise.reject(new Error('EROFS: read-only file system')) },
  }),
  { check: 'disk speed', subject: machine, verdict: 'failure', found: /cannot be used: EROFS/ },
);

names(
  'a database that everybody on the machine can read',
  async ({ dataDir }) => {
    await chmod(join(dataDir, 'postern.sqlite'), 0o644);
    await chmod(dataDir, 0o755);
  },
  {
    check: 'file permissions',
    subject: machine,
    verdict: 'warning',
    found: /^every user of this server can read .*postern\.sqlite/,
    advice: /chmod -R o= /,
  },
);

names('a time server that does not know the time itself', unsynchronized, {
  check: 'clock',
  subject: machine,
  verdict: 'skipped',
  found: /no answer from 127/,
});

function unsynchronized({ time, surroundings }: DoctorWorld): Change {
  time.stratum = 0;
  return { surroundings: { timeouts: { ...surroundings.timeouts!, time: 300 } } };
}

const ofCertificate = { check: 'certificate', subject: machine } as const;

for (const [file, verdict, found, advice] of [
  ['expired', 'failure', /cert\.pem expired on 2021-01-01$/, /renew/],
  ['other', 'warning', /cert\.pem is for other\.invalid, not for mx1\.invalid$/, /certbot certonly -d mx1/],
] as const) {
  names(
    `a certificate: ${file}`,
    ({ certificate }) => copyFile(new URL(`../fixtures/tls/${file}.pem`, import.meta.url), certificate),
    { ...ofCertificate, verdict, found, advice },
  );
}

names('a certificate with the key of another', async () => ({ config: { tlsKey: fixture('other') } }), {
  ...ofCertificate,
  verdict: 'failure',
  found: /other\.pem is not the key of/,
  advice: /POSTERN_TLS_KEY/,
});

function fixture(name: string): string {
  return new URL(`../fixtures/tls/${name}.pem`, import.meta.url).pathname;
}

test('a certificate near its end', async (t) => {
  const config = { acme: null, hostname, inboundPort: 25, submissionPort: null, submissionTlsPort: null };
  const at = (date: string) =>
    checkCertificate({ ...config, tlsCert: fixture('good'), tlsKey: null }, Date.parse(date));
  t.like(await at('2119-12-17T12:00:00Z'), { verdict: 'ok' });
  const near = await at('2119-12-18T12:00:00Z');
  t.is(near.verdict, 'warning');
  t.regex(near.found, /valid for 13 days more$/);
  t.like(await at('2119-12-30T12:00:00Z'), { verdict: 'warning' });
  t.regex((await at('2019-12-31T12:00:00Z')).found, /is valid only from 2020-01-01/);
});

test('tracking links that lead to this machine alone', async (t) => {
  const { db, domain, changed } = await startDoctorWorld(t);
  await db('domains').where({ id: domain.id }).update({ tracking_host: null });
  const all = await changed({ config: { baseUrl: 'http://127.0.0.1:8080' } });
  const [base, gone, ...more] = all;
  t.deepEqual(more, []);
  t.like(base, { check: 'base URL', verdict: 'failure' });
  t.like(gone, { check: 'tracking links' });
  t.regex(base!.found, /which other machines cannot open$/);
});

test('the real machine is measured, and left as it was', async (t) => {
  const { dataDir } = await startDoctorWorld(t);
  const before = await readdir(dataDir);
  const times = await realSurroundings.syncTimes(dataDir);
  t.true(times.length > 3 && times.every((ms) => ms > 0));
  t.deepEqual(await readdir(dataDir), before);
  t.true((await realSurroundings.freeBytes(dataDir)) > 0);
  t.true(realSurroundings.ownAddresses().includes('127.0.0.1'));
  const files = await realSurroundings.openFiles();
  t.true(process.platform !== 'linux' || files! > 100);
});

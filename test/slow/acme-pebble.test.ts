/**
 * Certificates from Debian's pebble, an ACME server that checks what a real one checks. The lines that are logged are the record.
 * Rate limits and several nodes are tested with an authority of our own (test/server/certificates.test.ts).
 */

import { Agent, type RequestOptions, request } from 'node:https';
import { text } from 'node:stream/consumers';
import { connect } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { setDomainTracking } from '#accounts/rows/domains-table.ts';
import { certificateShown } from '#lab/certificates/acme-world.ts';
import { startDns, type Zone } from '#lab/dns/dns.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { freePort } from '#lab/load/ports.ts';
import { connectSmtp } from '#lab/mx/smtp-client.ts';
import { type Pebble, type PebbleOptions, startPebble } from '#lab/programs/pebble.ts';
import { isInstalled } from '#lab/programs/programs.ts';
import { startWorld, type WorldOptions } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { systemClock } from '#platform/base/clock.ts';

const hasPebble = isInstalled('pebble');
if (!hasPebble) process.stderr.write('test/slow/acme-pebble.test.ts is skipped: apt-get install pebble\n');
const withPebble = hasPebble ? test.serial : test.serial.skip;

const name = 'postern.invalid';

interface Scene extends WorldOptions {
  pebble?: Partial<PebbleOptions>;
  /** The authority's DNS, if it has another view. */
  seen?: Zone;
  /** Called before the server starts. */
  before?(pebble: Pebble): Promise<void>;
}

async function startScene(t: ExecutionContext, options: Scene = {}) {
  t.timeout(240_000);
  const zone = { [name]: { A: ['127.0.0.1'] }, ...options.zone };
  const [httpPort, httpsPort] = [await freePort('127.0.0.1'), await freePort('127.0.0.1')];
  const seen = await startDns(options.seen ?? zone);
  t.teardown(() => seen.close());
  const pebble = await startPebble({
    directory: await temporaryDirectory(t),
    dns: seen.address,
    httpPort,
    tlsPort: httpsPort,
    ...options.pebble,
  });
  t.teardown(() => pebble.stop());
  await options.before?.(pebble);
  const world = await startWorld(t, {
    database: 'sqlite',
    ...options,
    zone,
    settings: {
      ...pebble.settings,
      POSTERN_ACME_HOST: '127.0.0.1',
      POSTERN_ACME_HTTP_PORT: String(httpPort),
      POSTERN_ACME_HTTPS_PORT: String(httpsPort),
      ...options.settings,
    },
    overrides: { acmePollMs: 200, ...options.overrides },
  });
  const rowOf = (host = name) => world.db('certificates').where({ host }).first();
  return {
    ...world,
    pebble,
    httpPort,
    httpsPort,
    rowOf,
    certified: (host = name) =>
      world.clock.passUntil(async () => (await rowOf(host))?.chain as string | null),
  };
}

/** The greeting of an SMTP server with TLS from the start; rejects if its certificate does not verify. */
function greeting(port: number, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', servername: name, ca });
    socket.once('data', (data) => {
      resolve(String(data));
      socket.destroy();
    });
    socket.once('error', reject).once('close', () => reject(new Error('closed')));
  });
}

/** Rejects if the certificate does not verify. */
function ask(port: number, ca: string, more: RequestOptions = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port,
      servername: name,
      headers: { host: name },
      path: '/health/live',
      ca,
    };
    request({ ...options, agent: false, ...more }, async (response) => {
      await text(response);
      resolve(response.statusCode!);
    })
      .on('error', reject)
      .end();
  });
}

for (const port of ['POSTERN_ACME_HTTPS_PORT', 'POSTERN_ACME_HTTP_PORT']) {
  const way = port === 'POSTERN_ACME_HTTP_PORT' ? 'TLS-ALPN-01' : 'HTTP-01';
  withPebble(`a first certificate by ${way}`, async (t) => {
    const begun = performance.now();
    const smtp = await freePort('127.0.0.1');
    const settings = { [port]: 'off', POSTERN_SUBMISSION_TLS_PORT: String(smtp) };
    const scene = await startScene(t, { settings });
    await scene.certified();
    t.log(`issued ${Math.round(performance.now() - begun)} ms after the start`);
    const root = await scene.pebble.root();
    t.regex(await greeting(smtp, root), /^220 /);
    if (way === 'TLS-ALPN-01') t.is(await ask(scene.httpsPort, root), 200);
  });
}

withPebble('renewals under load: no connection is dropped, over HTTPS or SMTP', async (t) => {
  const smtp = await freePort('127.0.0.1');
  const smtps = await freePort('127.0.0.1');
  const ports = { POSTERN_SUBMISSION_PORT: String(smtp), POSTERN_SUBMISSION_TLS_PORT: String(smtps) };
  const scene = await startScene(t, {
    pebble: { validitySeconds: 40 },
    settings: { ...ports, POSTERN_SMTP_PER_CLIENT: '500' },
    overrides: { clock: systemClock },
  });
  await until(async () => (await scene.rowOf())?.chain);
  const root = await scene.pebble.root();
  const shown = async () => (await certificateShown(scene.httpsPort, name)).fingerprint256;
  await until(async () => (await certificateShown(scene.httpsPort, name)).issuer.CN !== name);
  const certificates = new Set<string>();
  const dropped: string[] = [];
  const counts = { https: 0, kept: 0, smtp: 0 };
  const end = Date.now() + 90_000;
  const repeat = async (kind: keyof typeof counts, once: () => Promise<unknown>) => {
    while (Date.now() < end) {
      await once().then(
        () => (counts[kind] += 1),
        (error) => dropped.push(`${kind}: ${error.message}`),
      );
    }
  };
  const agent = new Agent({ keepAlive: true, maxSockets: 2, ca: root });
  const idle = await connectSmtp(smtp);
  await idle.says('EHLO x\r\n', '250');
  await Promise.all([
    ...Array.from({ length: 4 }, () => repeat('https', () => ask(scene.httpsPort, root))),
    ...Array.from({ length: 2 }, () => repeat('kept', () => ask(scene.httpsPort, root, { agent }))),
    ...Array.from({ length: 2 }, () => repeat('smtp', () => greeting(smtps, root))),
    (async () => {
      while (Date.now() < end) {
        const before = certificates.size;
        if (certificates.add(await shown()).size > before) await idle.says('NOOP\r\n', '250');
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
    })(),
  ]);
  agent.destroy();
  idle.close();
  t.log(`${certificates.size - 1} renewals, ${JSON.stringify(counts)}, ${dropped.length} dropped`);
  t.deepEqual(dropped, []);
  t.true(certificates.size >= 3);
});

withPebble(
  'wrong DNS: a customer’s host that leads elsewhere is not asked for, and ours says what the authority saw',
  async (t) => {
    const scene = await startScene(t, {
      zone: { 'track.sender.invalid': { A: ['192.0.2.1'] } },
      // As with a record that has not arrived everywhere.
      seen: { [name]: { A: ['127.0.0.9'] } },
    });
    const [{ id }] = await scene.db('domains').select('id');
    await setDomainTracking(scene.db, id, { clicks: true, host: 'track.sender.invalid' });
    const problemOf = (host: string) =>
      scene.clock.passUntil(async () => {
        const problem = (await scene.rowOf(host))?.problem;
        return problem && JSON.parse(problem);
      });
    const [own, customer] = [await problemOf(name), await problemOf('track.sender.invalid')];
    t.log(JSON.stringify({ own, customer }));
    t.is(own.type, 'connection');
    t.is(customer.type, 'dns-elsewhere');
    t.false(scene.pebble.log().includes('track.sender.invalid'));
  },
);

withPebble('the authority is down, and comes back without our account', async (t) => {
  const scene = await startScene(t, { before: (pebble) => pebble.stop() });
  const problem = await scene.clock.passUntil(async () => (await scene.rowOf())?.problem);
  t.log(problem);
  t.is((await certificateShown(scene.httpsPort, name)).issuer.CN, name, 'served with the self-signed one');
  await scene.pebble.start();
  const first = await scene.certified();
  t.is(await ask(scene.httpsPort, await scene.pebble.root()), 200);
  await scene.pebble.stop();
  await scene.pebble.start();
  await scene.db('certificates').update({ not_before: 1, not_after: Date.now() - 1, attempt_at: 0 });
  await scene.clock.passUntil(async () => (await scene.rowOf()).chain !== first);
  const { resume_at: resumeAt } = await scene.db('acme_accounts').first();
  t.is(resumeAt, 0);
});

/** From a start without certificates to one for each host: what is asked of the authority, and what is not. */
import { connect } from 'node:tls';
import test from 'ava';
import { setDomainTracking } from '#accounts/rows/domains-table.ts';
import { certificateShown, startAcmeWorld } from '#lab/certificates/acme-world.ts';
import { freePort } from '#lab/load/ports.ts';
import { until } from '#lab/until.ts';
import { retryHost } from '#operate/certificates/rows/certificates-table.ts';

test('the server gets its certificate by HTTP-01, and HTTPS and submission use it at once', async (t) => {
  const smtp = await freePort('127.0.0.1');
  const world = await startAcmeWorld(t, { settings: { POSTERN_SUBMISSION_TLS_PORT: String(smtp) } });
  await world.untilCertified();
  const { status, headers } = await world.https('/health/live');
  t.is(status, 200);
  t.is(headers['strict-transport-security'], 'max-age=2592000');
  for (const port of [smtp, world.httpsPort]) {
    const shown = await certificateShown(port, 'postern.invalid');
    t.is(shown.issuer.CN, 'Authority of the tests');
    t.is((await certificateShown(port)).fingerprint256, shown.fingerprint256, 'also without a name');
    t.is((await certificateShown(port, 'POSTERN.invalid')).fingerprint256, shown.fingerprint256);
    t.is((await certificateShown(port, 'other.invalid')).fingerprint256, shown.fingerprint256);
  }
  const row = await world.rowOf('postern.invalid');
  t.regex(row.private_key, /^v1\./, 'sealed');
  t.is(row.token, null);
  t.deepEqual(
    world.authority.requests.filter((one) => one.includes('/chall/')),
    ['POST /chall/0/http-01'],
  );
});

test('until there is a certificate, the ports serve with the self-signed one', async (t) => {
  const world = await startAcmeWorld(t, {
    prepare: (authority) => {
      authority.script = () => ({ status: 503 });
    },
  });
  t.is((await certificateShown(world.httpsPort, 'postern.invalid')).issuer.CN, 'postern.invalid');
  const before = await world.untilFailed('postern.invalid', 0);
  t.like(before, { type: 'authority', text: 'the authority answers HTTP 503' });
});

test('without port 80 by TLS-ALPN-01, which shows its certificate to the authority alone', async (t) => {
  const world = await startAcmeWorld(t, { settings: { POSTERN_ACME_HTTP_PORT: 'off' } });
  await world.untilCertified();
  t.deepEqual(
    world.authority.requests.filter((one) => one.includes('/chall/')),
    ['POST /chall/0/tls-alpn-01'],
  );
  t.is((await world.https('/health/live')).status, 200);
  const protocolOf = (...ALPNProtocols: string[]) =>
    new Promise((resolve) => {
      const options = {
        port: world.httpsPort,
        host: '127.0.0.1',
        servername: 'postern.invalid',
        ALPNProtocols,
      };
      const socket = connect({ ...options, rejectUnauthorized: false }, () => {
        resolve(socket.alpnProtocol);
        socket.destroy();
      });
      socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code));
    });
  t.is(await protocolOf('h2', 'http/1.1'), 'http/1.1');
  t.is(
    await protocolOf('acme-tls/1'),
    'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL',
    'when no challenge is open',
  );
});

test('the policy host of a verified domain is certified and serves the policy, if its DNS leads here', async (t) => {
  const world = await startAcmeWorld(t, {
    zone: {
      'sender.invalid': { MX: ['10 mx1.invalid', '20 mx2.invalid'] },
      'mta-sts.sender.invalid': { CNAME: ['postern.invalid'] },
    },
  });
  await world.untilCertified('mta-sts.sender.invalid');
  const path = '/.well-known/mta-sts.txt';
  const { status, text, headers } = await world.https(path, 'mta-sts.sender.invalid');
  t.is(status, 200);
  t.is(headers['content-type'], 'text/plain; charset=utf-8');
  t.is(text, 'version: STSv1\r\nmode: testing\r\nmx: mx1.invalid\r\nmx: mx2.invalid\r\nmax_age: 86400\r\n');
  t.is((await world.https(path)).status, 404, 'nowhere else');
});

test('a stop does not wait for an authority or a name server that is silent', async (t) => {
  const stop = async (world: Awaited<ReturnType<typeof startAcmeWorld>>) => {
    await world.stop();
    t.is((await world.rowOf('postern.invalid')).problem, null, 'it was not waited for until it failed');
  };
  const silent = await startAcmeWorld(t, {
    prepare: (authority) => {
      authority.script = () => 'silence';
    },
  });
  await until(() => silent.authority.requests.length > 0);
  await stop(silent);
  const unknown = await startAcmeWorld(t, { zone: { 'postern.invalid': 'TIMEOUT' } });
  await until(() =>
    unknown.dns.queries.some(({ name, type }) => name === 'postern.invalid' && type === 'AAAA'),
  );
  await stop(unknown);
});

test('port 80 redirects what may be redirected to our hosts, and answers no other', async (t) => {
  const world = await startAcmeWorld(t);
  const base = `https://postern.invalid:${world.httpsPort}`;
  const got = await world.clock.passUntil(async () => {
    const answer = await world.http('/dashboard?a=b');
    return answer.status === 301 && answer;
  });
  t.is(got.headers.location, `${base}/dashboard?a=b`);
  t.is((await world.http('//evil.invalid/')).headers.location, `${base}//evil.invalid/`);
  t.is((await world.http('/', { host: 'POSTERN.invalid:80' })).headers.location, `${base}/`);
  t.is((await world.http('/', { host: 'evil.invalid' })).status, 404);
  const posted = await world.http('/api/public/email/send', { method: 'POST' });
  t.is(posted.status, 403);
  t.regex(posted.text, /replace the key/);
  t.is((await world.http('/.well-known/acme-challenge/none')).status, 404);
  const mapped = await startAcmeWorld(t, { settings: { POSTERN_BASE_URL: 'https://postern.invalid' } });
  await mapped.clock.passUntil(
    async () => (await mapped.http('/a')).headers.location === 'https://postern.invalid/a',
  );
  t.is((await world.http('/.well-known/acme-challenge/../../health/live')).status, 404);
});

test('a chain that cannot be used is not stored, and a stored one leaves its host with the self-signed certificate', async (t) => {
  const world = await startAcmeWorld(t, {
    zone: { 'track.sender.invalid': { A: ['127.0.0.1'] } },
    prepare: (authority) => {
      authority.script = (path) =>
        path.startsWith('/cert/')
          ? { status: 200, body: `${authority.orders[Number(path.split('/')[2])]!.chain}${brokenPem}` }
          : undefined;
    },
  });
  const { text } = await world.untilFailed('postern.invalid', 0);
  t.regex(text, /^the authority has sent a chain for postern\.invalid that cannot be used: /);
  t.is((await world.rowOf('postern.invalid')).chain, null);
  world.authority.script = () => undefined;
  await world.untilCertified();

  const broken = { chain: brokenPem, not_before: 1, attempt_at: world.clock.now() + 86_400_000 };
  await world.db('certificates').where({ host: 'postern.invalid' }).update(broken);
  await world.restart();
  t.is((await certificateShown(world.httpsPort, 'postern.invalid')).issuer.CN, 'postern.invalid');
  const [{ id }] = await world.db('domains').select('id');
  await setDomainTracking(world.db, id, { clicks: true, host: 'track.sender.invalid' });
  await world.untilCertified('track.sender.invalid');

  await retryHost(world.db, 'postern.invalid', world.clock.now());
  await world.untilCertified('postern.invalid', brokenPem);
});

const brokenPem = '-----BEGIN CERTIFICATE-----\nMAAA\n-----END CERTIFICATE-----\n';

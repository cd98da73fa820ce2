/** The private parts of mx-connect are still what src/platform/vendor/mx-connect.ts expects. */
import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import test from 'ava';
import { checkPart, checkVersion } from '#lab/vendor.ts';
import type { MxDelivery } from '#platform/vendor/mx-connect.ts';

const file = 'src/platform/vendor/mx-connect.ts';
const load = () => import('#platform/vendor/mx-connect.ts');

test('mx-connect is pinned to the version that was read', (t) => checkVersion(t, 'mx-connect', file));

test('mx-connect/lib/resolve-mx and resolve-ip fill the delivery that they are given', async (t) => {
  const answers: Record<string, unknown[]> = {
    'example.invalid MX': [{ exchange: 'mx.invalid', priority: 10 }],
    'mx.invalid A': ['192.0.2.1'],
    'mx.invalid AAAA': ['2001:db8::1'],
  };
  const delivery: MxDelivery = {
    domain: 'example.invalid',
    mx: [],
    blockedAddresses: [],
    dnsOptions: {
      resolveRecords: async (name, type) => answers[`${name} ${type}`] ?? [],
      blockLocalAddresses: false,
      blockReservedNetworks: false,
    },
    mtaSts: { logger: () => {} },
  };
  await checkPart(t, 'mx-connect/lib/format-address, resolve-mx or resolve-ip', file, async () => {
    const { formatAddress, resolveMX, resolveIP } = await load();
    await formatAddress(delivery);
    await resolveMX(delivery);
    await resolveIP(delivery);
    const [mx] = delivery.mx;
    const facts = [mx?.exchange, mx?.priority, mx?.A, mx?.AAAA];
    return JSON.stringify(facts) === '["mx.invalid",10,["192.0.2.1"],["2001:db8::1"]]';
  });
});

test('mx-connect/lib/tools refuses private addresses, and only those', async (t) => {
  await checkPart(t, 'isInvalid of mx-connect/lib/tools', file, async () => {
    const { isForbidden } = await load();
    const forbidden = ['127.0.0.1', '10.0.0.1', '::1', '::ffff:10.0.0.1', 'fd00::1'];
    return (
      forbidden.every((address) => isForbidden(address, false) && !isForbidden(address, true)) &&
      !isForbidden('8.8.8.8', false)
    );
  });
});

test('mx-connect/lib/dane matches a certificate with its TLSA record, and with no other', async (t) => {
  const certificate = new X509Certificate(
    readFileSync(new URL('../../fixtures/tls/good.pem', import.meta.url)),
  );
  const digest = createHash('sha256').update(certificate.raw).digest();
  await checkPart(t, 'verifyCertAgainstTlsa of mx-connect/lib/dane', file, async () => {
    const { verifyCertAgainstTlsa } = await load();
    const matches = (cert: Buffer) =>
      verifyCertAgainstTlsa(certificate, [{ usage: 3, selector: 0, mtype: 1, cert }], []).valid;
    return matches(digest) && !matches(Buffer.alloc(32));
  });
});

/**
 * Item 13 too: certificates, which all customers get of one authority. It counts the orders of all of us together, and what it
 * sends for one host must not keep another's from use. The authority is that of the tests.
 */
import { X509Certificate } from 'node:crypto';
import { insertDomain, setDomainStatus, setDomainTracking } from '#accounts/rows/domains-table.ts';
import { certificateShown } from '#lab/certificates/acme-world.ts';
import { until } from '#lab/until.ts';
import { type Attack, type Verdict, verdict } from './attack.ts';
import { orgIdOf, type Scene } from './scene.ts';

/** Verified domains of an organization, each with a tracking host whose DNS leads here. */
async function addTrackingHosts(
  { db, dns, addTenant }: Scene,
  name: string,
  count: number,
): Promise<string[]> {
  const orgId = await orgIdOf(db, await addTenant());
  const now = Date.now();
  const hosts = Array.from({ length: count }, (_, n) => `t.${name}${n}.invalid`);
  dns.set(Object.fromEntries(hosts.map((host) => [host, { A: ['127.0.0.1'] }])));
  for (const host of hosts) {
    const key = { dkimSelector: 's', dkimPublicKey: 'p', dkimPrivateKey: 'k' };
    const id = await insertDomain(db, { orgId, name: host.slice(2), ...key }, now);
    await setDomainStatus(db, id!, 'verified', now);
    await setDomainTracking(db, id!, { clicks: true, host });
  }
  return hosts;
}

const maxNewHosts = 20;
const timeout = 170_000;

/** One organization has many new hosts at once, and for a host of another the authority sends a chain that cannot be used. */
async function manyHosts(scene: Scene): Promise<Verdict> {
  const { db, authority, ports, hasEnded } = scene;
  const { orders } = authority!;
  const isBad = (path: string) => orders[Number(path.split('/')[2])]?.host.startsWith('t.bad');
  authority!.script = (path) =>
    path.startsWith('/cert/') && isBad(path) ? { status: 200, body: broken } : undefined;
  const [bad] = await addTrackingHosts(scene, 'bad', 1);
  const many = await addTrackingHosts(scene, 'many', 3 * maxNewHosts);
  const [other] = await addTrackingHosts(scene, 'other', 1);
  const chainOf = async (host: string): Promise<string | null> =>
    (await db('certificates').where({ host }).first('chain'))?.chain ?? null;
  const isSettled = async () => {
    const rows = await db('certificates').whereIn('host', many).select('chain', 'problem');
    return rows.length === many.length && rows.every(({ chain, problem }) => chain ?? problem);
  };
  await until(isSettled, { timeout, what: 'each host to have a certificate or a reason' });
  const chain = await until(() => chainOf(other!), { timeout, what: "another customer's certificate" });
  const { fingerprint256 } = await until(
    async () => {
      const shown = await certificateShown(ports.https!, other);
      return shown.subject.CN === 'postern.invalid' ? null : shown;
    },
    { what: 'it to be in use' },
  ).catch(() => ({ fingerprint256: '' }));
  const asked = orders.filter(({ host }) => many.includes(host)).length;
  return verdict(
    `${asked} orders for ${many.length} hosts of one organization`,
    [asked <= maxNewHosts, `the authority was asked ${asked} times for one organization`],
    [asked > 0, 'the authority was not asked: nothing was measured'],
    [(await chainOf(bad!)) === null, 'a chain that cannot be used was stored'],
    [
      fingerprint256 === new X509Certificate(chain).fingerprint256,
      "another customer's certificate is not in use",
    ],
    [!hasEnded(), 'the server has ended'],
  );
}

const broken = '-----BEGIN CERTIFICATE-----\nMAAA\n-----END CERTIFICATE-----\n';

export const certificates: Attack[] = [
  {
    item: 13,
    name: 'sixty new hosts of one organization, and a broken chain',
    place: 'certificates',
    timeoutMs: 240_000,
    run: manyHosts,
  },
];

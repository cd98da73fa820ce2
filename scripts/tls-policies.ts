/**
 * `node scripts/tls-policies.ts`: checks that Postern follows the TLS policies of recipient domains, DANE and MTA-STS, with a real,
 * validating Unbound, a web server with policies at port 443, and MX hosts with the right certificate, a wrong one and none. One
 * mail goes to each domain. Needs root. Exits 0 if each ends as it must, 1 if not, 2 if Unbound cannot be run; it then prints how
 * to install it.
 */

import { join } from 'node:path';
import { startDns, type Zone } from '#lab/dns/dns.ts';
import { obstacle, type SignedZone, startUnbound } from '#lab/dns/unbound.ts';
import { conclude } from '#lab/load/conclude.ts';
import { tableOf } from '#lab/load/figures.ts';
import { endIf, runScript, type Stage } from '#lab/load/stage.ts';
import { type Mx, mxPem, startMxs } from '#lab/mx/mx.ts';
import { authorityFile, authorizedPem, policy, startPolicyHost, tlsaOf } from '#lab/mx/policy-host.ts';
import { type PosternProcess, startProcess } from '#lab/scenes/process.ts';
import { createTenant } from '#lab/scenes/world.ts';
import { table } from '#lab/table.ts';
import { until } from '#lab/until.ts';
import type { telemetry } from '#mail/record/telemetry.ts';
import { openDatabase } from '#platform/database/engine/open.ts';
import { loadConfig } from '#platform/settings/config.ts';

type Email = ReturnType<typeof telemetry>;

type Case = [domain: string, what: string, status: string, sign: string | RegExp, isVerified?: boolean];

const cases = table<Case>('route/tls-policies');

/** One address each: a self-signed certificate (twice), one of the tests' authority, none at all. */
const exchangers = {
  selfSigned: { host: '127.0.0.2' },
  alike: { host: '127.0.0.5' },
  authorized: { host: '127.0.0.3', pem: authorizedPem },
  clear: { host: '127.0.0.4', tls: false },
};

const policies = {
  'right.invalid': policy('enforce', ['mx1.invalid']),
  'wrong.invalid': policy('enforce', ['mx2.invalid']),
  'other.invalid': policy('enforce', ['mx9.invalid']),
  'testing.invalid': policy('testing', ['mx2.invalid']),
};

/** The port of policy hosts cannot be configured: it is that of HTTPS. */
const policyHost = { host: '127.0.0.9', port: 443 };

function signedZones(port: number): SignedZone[] {
  const domain = (name: string, address: string, tlsa: string | null) => [
    `${name} MX 20 mx.${name}`,
    `mx.${name} A ${address}`,
    ...(tlsa === null ? [] : [`_${port}._tcp.mx.${name} TLSA ${tlsa}`]),
  ];
  const { selfSigned, alike, clear } = exchangers;
  const placeholder = '11'.repeat(32);
  const records = [
    ...domain('right', selfSigned.host, tlsaOf(mxPem)),
    ...domain('wrong', selfSigned.host, tlsaOf(authorizedPem)),
    ...domain('clear', clear.host, tlsaOf(mxPem)),
    ...domain('altered', selfSigned.host, `3 1 1 ${placeholder}`),
    ...domain('bare', selfSigned.host, null),
    'next MX 10 mx.altered',
    ...domain('next', alike.host, tlsaOf(mxPem)),
  ];
  return [
    {
      name: 'signed.invalid',
      records,
      forge: (signed) => signed.replaceAll(placeholder, tlsaOf(mxPem).slice('3 1 1 '.length)),
    },
    { name: 'forged.invalid', records: ['@ MX 10 mx1.invalid.'], wrongKey: true },
  ];
}

/** All names outside the signed zones. */
function unsignedZone(port: number): Zone {
  const announced = Object.keys(policies).flatMap((domain) => [
    [`_mta-sts.${domain}`, { TXT: ['v=STSv1; id=1;'] }],
    [`mta-sts.${domain}`, { A: [policyHost.host] }],
  ]);
  return {
    'plain.invalid': { MX: ['10 mx2.invalid'] },
    'right.invalid': { MX: ['10 mx1.invalid'] },
    'wrong.invalid': { MX: ['10 mx2.invalid'] },
    'other.invalid': { MX: ['10 mx1.invalid'] },
    'testing.invalid': { MX: ['10 mx2.invalid'] },
    'mx1.invalid': { A: [exchangers.authorized.host] },
    'mx2.invalid': { A: [exchangers.selfSigned.host] },
    [`_${port}._tcp.mx2.invalid`]: { TLSA: [tlsaOf(authorizedPem)] },
    ...Object.fromEntries(announced),
  };
}

interface World {
  postern: PosternProcess;
  key: string;
  mxs: Mx[];
  interrupted: AbortSignal;
}

async function setUp({ directory, interrupted, start }: Stage): Promise<World> {
  const mxs = await start(startMxs(Object.values(exchangers)), (all) =>
    Promise.all(all.map((mx) => mx.close())),
  );
  await start(startPolicyHost(policies, policyHost), (web) => web.close());
  const { port } = mxs[0]!;
  const dns = await start(startDns(unsignedZone(port)), (it) => it.close());
  const unbound = await start(
    startUnbound({ directory, zones: signedZones(port), dnsPort: dns.port }),
    (it) => it.stop(),
  );
  const settings = {
    POSTERN_DATA_DIR: join(directory, 'data'),
    POSTERN_HOSTNAME: 'postern.invalid',
    POSTERN_DNS_SERVERS: unbound.address,
    POSTERN_MTA_PORT: String(port),
    POSTERN_MTA_ALLOW_PRIVATE: 'true',
    POSTERN_MTA_RETRY: '10m',
  };
  const postern = await start(startProcess({ ...settings, NODE_EXTRA_CA_CERTS: authorityFile }), (it) =>
    it.end('SIGTERM'),
  );
  const config = loadConfig(settings);
  const db = await start(openDatabase(config), (it) => it.destroy());
  return { postern, key: await createTenant(db, config, dns), mxs, interrupted };
}

/** Sends a mail through the API and waits for the end of its first attempt. */
async function send(domain: string, { postern, key, interrupted }: World): Promise<Email> {
  const call = async (path: string, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const url = `${postern.url}/api/public/email/${path}`;
    const response = await fetch(url, { headers, signal: interrupted, ...init });
    const body = (await response.json()) as Email;
    if (!response.ok) throw new Error(`${domain}: HTTP ${response.status}, ${JSON.stringify(body)}`);
    return body;
  };
  const fields = {
    from: 'App <app@sender.invalid>',
    to: `ann@${domain}`,
    subject: 'Hello',
    text: 'Hello there',
  };
  const { emailId } = await call('send', { method: 'POST', body: JSON.stringify(fields) });
  let email: Email | undefined;
  await until(
    async () => {
      email = await call(emailId);
      return !['queued', 'sending'].includes(email.status);
    },
    {
      what: () => `${domain}: the end of the first attempt; last: ${JSON.stringify(email)}`,
    },
  );
  return email!;
}

/** The result of one domain's mail: its row of the table, and its faults. */
async function judge(one: Case, world: World): Promise<{ row: string[]; fault: string | null }> {
  const [domain, what, wanted, sign, isVerified] = one;
  const email = await send(domain, world);
  const { status, tls } = email.recipients[0]!;
  const { data } = email.events.findLast(({ type }) => type === `email.${status}`)!;
  const reason = String((data as { diagnostic?: string }).diagnostic ?? '');
  const protection = tls ? `${tls.policy}, ${tls.verified ? '' : 'not '}verified` : 'none';
  const arrived = world.mxs.some((mx) => mx.messages.some(({ to }) => to.includes(`ann@${domain}`)));
  const holds =
    status === wanted &&
    arrived === (wanted === 'delivered') &&
    (sign instanceof RegExp ? sign.test(reason) : tls?.policy === sign && tls.verified === isVerified);
  const row = [what, status, status === 'delivered' ? protection : reason, holds ? 'yes' : 'NO'];
  const fault = holds ? null : `${domain} must be ${wanted}, is ${status}: ${protection}, ${reason}`;
  return { row, fault };
}

function print(rows: string[][]): void {
  const head = ["the recipient's domain publishes", 'status', 'protection, or the reason', 'as it must be'];
  console.log(tableOf(head, rows, [36, 11, 68, 9]));
}

endIf(process.getuid?.() === 0 ? obstacle() : 'port 443 is for root; run this as root, in a container say');
let rows: string[][] = [];
const faults = await runScript('tls-policies', async (stage) => {
  const world = await setUp(stage);
  const judged = await Promise.all(cases.map((one) => judge(one, world)));
  rows = judged.map(({ row }) => row);
  return judged.flatMap(({ fault }) => fault ?? []);
});
conclude({ faults, print: () => print(rows) });

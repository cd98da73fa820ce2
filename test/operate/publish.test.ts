/** What is published at a DNS provider and what is left; updates by RFC 2136 against a server that checks the packets. */
import test, { type ExecutionContext } from 'ava';
import type { ZoneRecord } from '#accounts/zone-text.ts';
import { startUpdateServer } from '#lab/dns/update-server.ts';
import {
  type Change,
  type DnsProvider,
  type PresentRecord,
  planChanges,
} from '#operate/publish/plan-changes.ts';
import { readTsigKey } from '#operate/publish/providers.ts';
import { Rfc2136 } from '#operate/publish/rfc2136.ts';

const zone = 'shop.invalid';
const dkim = { type: 'TXT', name: `pstn0a1b2c3d._domainkey.${zone}`, value: 'v=DKIM1; k=rsa; p=NEW' };
const cname = { type: 'CNAME', name: `bounces.${zone}`, value: 'mail.postern.invalid' };
const dmarc = { type: 'TXT', name: `_dmarc.${zone}`, value: 'v=DMARC1; p=none' };
const spf = { type: 'TXT', name: zone, value: 'v=spf1 a:mail.postern.invalid ~all' };
const mx = { type: 'MX', name: zone, value: '10 mail.postern.invalid' };

type Look = [what: string, ours: ZoneRecord, there: [type: string, value: string][] | null, plan: RegExp];

const looks: Look[] = [
  ['nothing is there', dkim, [], /^add$/],
  ['ours is there', dkim, [['TXT', dkim.value]], /^keep$/],
  ['our selector has an old key', dkim, [['TXT', 'v=DKIM1; p=OLD']], /^replace$/],
  [
    'our selector has two keys',
    dkim,
    [
      ['TXT', dkim.value],
      ['TXT', 'x'],
    ],
    /^leave: there are 2 records/,
  ],
  ['our selector is an alias', dkim, [['CNAME', 'x.invalid']], /^leave: .*CNAME x\.invalid$/],
  ['the alias is there', cname, [['CNAME', 'Mail.Postern.Invalid.']], /^keep$/],
  ['another alias', cname, [['CNAME', 'x.invalid']], /^leave: .*not from Postern: CNAME x\.invalid$/],
  ['an MX record where the alias would be', cname, [['MX', '10 x.invalid']], /^leave: .*MX 10 x\.invalid$/],
  ['an address where the alias would be', cname, [['A', '192.0.2.1']], /^leave/],
  ['a DMARC policy of its own', dmarc, [['TXT', 'v=DMARC1; p=reject']], /^keep$/],
  [
    'two DMARC policies',
    dmarc,
    [
      ['TXT', 'v=DMARC1; p=none'],
      ['TXT', 'v=DMARC1; p=reject'],
    ],
    /^leave/,
  ],
  ['another text beside', dmarc, [['TXT', 'hello']], /^add$/],
  ['another SPF record', spf, [['TXT', 'v=spf1 mx -all']], /^leave: .*v=spf1 mx -all$/],
  ['a text beside SPF', spf, [['TXT', 'site-verification=1']], /^add$/],
  ['another mail host', mx, [['MX', '10 x.invalid']], /^leave/],
  ['the mail host with a dot', mx, [['MX', '10 mail.postern.invalid.']], /^keep$/],
  ['a name of another provider', dkim, null, /^leave: the name is in none of the zones of here$/],
  ['a reverse name', { type: 'PTR', name: 'x', value: 'y' }, [], /^leave: the name is in none/],
];

for (const [what, ours, there, expected] of looks) {
  test(`plan: ${what}`, async (t) => {
    const provider: DnsProvider = {
      name: 'here',
      read: async (name) => there?.map(([type, value]): PresentRecord => ({ type, name, value })) ?? null,
      write: async () => {},
    };
    const [plan] = await planChanges(provider, [ours]);
    t.regex(plan!.action === 'leave' ? `leave: ${plan!.reason}` : plan!.action, expected);
  });
}

const key = { name: 'postern', secret: Buffer.from('a secret') };

async function startServer(t: ExecutionContext, records: string[] = []) {
  const server = await startUpdateServer({ zone, key, records });
  t.teardown(() => server.close());
  const where = { host: '127.0.0.1', port: server.port };
  /** For a server that does not answer. */
  const hasty = new Rfc2136({ server: where, key, now: Date.now, timeoutMs: 500 });
  const dns = new Rfc2136({ server: where, key, now: Date.now, timeoutMs: 300_000 });
  return { server, dns, hasty };
}

test('rfc2136: each update names what must still be so, changes one record, and is signed', async (t) => {
  const { server, dns } = await startServer(t, [`TXT ${dkim.name} v=DKIM1; p=OLD`, `TXT ${zone} text`]);
  const plans = (await planChanges(dns, [dkim, cname, spf])) as Change[];
  for (const plan of plans) await dns.write(plan);
  t.deepEqual(server.updates, [
    [
      `NONE CNAME ${dkim.name} `,
      `IN TXT ${dkim.name} v=DKIM1; p=OLD`,
      `NONE TXT ${dkim.name} v=DKIM1; p=OLD`,
      `IN TXT ${dkim.name} ${dkim.value}`,
    ],
    [`NONE ANY ${cname.name} `, `IN CNAME ${cname.name} ${cname.value}`],
    [`NONE CNAME ${zone} `, `IN TXT ${zone} text`, `IN TXT ${zone} ${spf.value}`],
  ]);
  for (const plan of plans)
    await t.throwsAsync(dns.write(plan), { message: /have changed since they were read/ });
  t.is(server.updates.length, 3);
});

test('rfc2136: an answer that is not the server’s does not count', async (t) => {
  const { server, dns, hasty } = await startServer(t);
  const change: Change = { action: 'add', record: cname, present: [] };
  const refused = async (answer: (honest: Buffer) => Buffer | null, message: RegExp, by = dns) => {
    server.answer = answer;
    await t.throwsAsync(by.write({ ...change, record: { ...cname, name: `n${Math.random()}.${zone}` } }), {
      message,
    });
  };
  const unsigned = (honest: Buffer) => {
    const bytes = Buffer.from(honest.subarray(0, 12));
    bytes.writeUInt16BE(0, 10);
    return bytes;
  };
  const changed = (at: number) => (honest: Buffer) => {
    const bytes = Buffer.from(honest);
    bytes[at] = bytes[at]! ^ 1;
    return bytes;
  };
  await refused(unsigned, /not signed with the key, so it does not count/);
  await refused(changed(3), /wrong signature/);
  await refused(changed(60), /wrong signature/);
  await refused(changed(0), /answered something else/);
  await refused((honest) => honest.subarray(0, honest.length - 20), /not a DNS message|wrong signature/);
  await refused(() => Buffer.from('hello'), /answered something else/);
  await refused(
    (honest) => Buffer.concat([honest.subarray(0, 11), Buffer.alloc(60_000, 0xff)]),
    /DNS message|sign/,
  );
  await refused(() => null, /did not answer over TCP/, hasty);
  const other = new Rfc2136({
    server: { host: '127.0.0.1', port: server.port },
    key: { ...key, secret: Buffer.from('wrong') },
    now: Date.now,
  });
  server.answer = null;
  await t.throwsAsync(other.write(change), { message: /the secret in POSTERN_DNS_UPDATE_KEY is not/ });
  const gone = new Rfc2136({ server: { host: '127.0.0.1', port: 1 }, key, now: Date.now });
  await t.throwsAsync(gone.write(change), {
    message: /^the DNS server 127\.0\.0\.1 could not be asked over TCP/,
  });
});

test('a TSIG key is read as nsupdate and tsig-keygen write it', (t) => {
  const secret = Buffer.from('secret');
  for (const text of [
    'postern:c2VjcmV0',
    'hmac-sha256:postern.:c2VjcmV0',
    'key "postern" {\n\talgorithm hmac-sha256;\n\tsecret "c2VjcmV0";\n};',
  ])
    t.deepEqual(readTsigKey(text), { name: 'postern', secret });
  t.throws(() => readTsigKey('hmac-md5:postern:c2VjcmV0'), {
    message: /only keys of the algorithm hmac-sha256/,
  });
  t.throws(() => readTsigKey('hello'), { message: /is not a TSIG key/ });
  t.false(String(t.throws(() => readTsigKey('top secret'))).includes('top secret'));
});

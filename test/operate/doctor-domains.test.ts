/** `postern doctor` on the way back and on sender domains: when one thing alone is wrong, exactly that is named. */
import ava, { type ExecutionContext } from 'ava';
import { setDomainStatus } from '../../src/db/accounts/domains-table.ts';
import { startMx } from '../lab/mx/mx.ts';
import { type Change, names } from '../lab/scenes/doctor-names.ts';
import { type DoctorWorld, dkimDomain, hostname, startDoctorWorld } from '../lab/scenes/doctor-world.ts';

/** Each world is a few servers; many of them at once would keep each other waiting. */
const test = ava.serial;

// The way back.

const ofReturn = { check: 'return path', subject: 'bounces.invalid' } as const;
const mxRecord = { type: 'MX', name: 'bounces.invalid', value: `10 ${hostname}` };
const returnSpf = 'v=spf1 ip4:127.0.0.1 -all';

names('no mail host for returned mail', ({ dns }) => dns.set({ 'bounces.invalid': { TXT: [returnSpf] } }), {
  ...ofReturn,
  verdict: 'failure',
  found: /takes no mail/,
  records: [mxRecord],
});

names(
  'returned mail goes elsewhere',
  ({ dns }) => dns.set({ 'bounces.invalid': { MX: ['10 in.big.invalid'], TXT: [returnSpf] } }),
  {
    ...ofReturn,
    verdict: 'failure',
    records: [mxRecord],
    found: /^it leads to in\.big\.invalid \(127\.0\.0\.2\), none of which is this machine$/,
  },
);

names(
  'the mail host for returned mail does not exist',
  ({ dns }) => dns.set({ 'back.bounces.invalid': null }),
  {
    ...ofReturn,
    verdict: 'failure',
    found: /^the hosts in the MX record of bounces\.invalid have no address$/,
    records: [mxRecord],
  },
);

const ofReturned = { check: 'returned mail', subject: 'bounces.invalid' } as const;

names('nothing takes returned mail', ({ returned }) => returned.close(), {
  ...ofReturned,
  verdict: 'failure',
  found: /nothing answers on this machine either$/,
  advice: /^start Postern/,
});

names('another server takes returned mail', ({ peers }, t) => takenPort(t, peers[0]!.port), {
  ...ofReturned,
  verdict: 'failure',
  found: /^port \d+ of 127\.0\.0\.1 greets as another server: "220 other\.invalid/,
  advice: /^stop the other/,
});

async function takenPort(t: ExecutionContext, port: number): Promise<Change> {
  const other = await startMx({ host: '127.0.0.1', port, hostname: 'other.invalid' });
  t.teardown(() => other.close());
  return { surroundings: { returnPort: port } };
}

names('a firewall before returned mail', () => ({ surroundings: { returnPort: 9 } }), {
  ...ofReturned,
  verdict: 'warning',
  advice: /^open port 9 in the firewall/,
  found: /^this server answers at port \d+ here, but 127\.0\.0\.1 refused the connection$/,
});

test('returned mail is not taken', async (t) => {
  const { changed } = await startDoctorWorld(t);
  const [finding, reports, ...more] = await changed({ config: { inboundPort: null } });
  t.deepEqual(more, []);
  t.like(finding, { ...ofReturned, verdict: 'warning', advice: 'set POSTERN_INBOUND_PORT=25' });
  // Reports come in there too: nobody asks for their record now.
  t.like(reports, { check: 'DMARC reports', verdict: 'ok' });
});

const spfOf = (domain: string, value: string) => [{ type: 'TXT', name: domain, value }];
const returnMx = ['10 back.bounces.invalid'];
const ofReturnSpf = { check: 'SPF', subject: 'bounces.invalid' } as const;

names(
  'SPF of the return path forbids us',
  ({ dns }) => dns.set({ 'bounces.invalid': { MX: returnMx, TXT: ['v=spf1 ip4:192.0.2.1 -all'] } }),
  {
    ...ofReturnSpf,
    verdict: 'failure',
    found: /ip4:192\.0\.2\.1 -all: fail for 127\.0\.0\.1$/,
    records: spfOf('bounces.invalid', 'v=spf1 a:mx1.invalid ip4:192.0.2.1 -all'),
  },
);

names('no SPF of the return path', ({ dns }) => dns.set({ 'bounces.invalid': { MX: returnMx } }), {
  ...ofReturnSpf,
  verdict: 'warning',
  found: /^no SPF record: none for 127\.0\.0\.1$/,
  advice: /^publish one$/,
  records: spfOf('bounces.invalid', 'v=spf1 a:mx1.invalid ~all'),
});

names(
  'two SPF records of the return path',
  ({ dns }) => dns.set({ 'bounces.invalid': { MX: returnMx, TXT: [returnSpf, 'v=spf1 mx ?all'] } }),
  {
    ...ofReturnSpf,
    verdict: 'failure',
    found: /permerror for 127\.0\.0\.1/,
    advice: /only one SPF record/,
    records: spfOf('bounces.invalid', 'v=spf1 a:mx1.invalid ip4:127.0.0.1 mx -all'),
  },
);

// Sender domains.

names('SPF of a sender domain forbids us', ({ dns }) => dns.set({ [dkimDomain]: { TXT: ['v=spf1 -all'] } }), {
  check: 'SPF',
  subject: dkimDomain,
  verdict: 'warning',
  found: /^v=spf1 -all: fail for 127\.0\.0\.1$/,
  records: spfOf(dkimDomain, 'v=spf1 a:mx1.invalid -all'),
});

const dkimRecord = ({ domain }: DoctorWorld) => ({
  type: 'TXT',
  name: `${domain.dkimSelector}._domainkey.${dkimDomain}`,
  value: `v=DKIM1; k=rsa; p=${domain.dkimPublicKey}`,
});

test('the DKIM key is not there, is another, or is not told', async (t) => {
  const world = await startDoctorWorld(t);
  const record = dkimRecord(world);
  const ofDkim = { check: 'DKIM', subject: dkimDomain };
  for (const [entry, verdict, found] of [
    [null, 'failure', /^no TXT record at pstn/],
    [
      { TXT: ['v=DKIM1; k=rsa; p=AAAA'] },
      'failure',
      /has a different value: v=DKIM1; k=rsa; p=AAAA\. There is a DKIM record, but with a different key/,
    ],
    ['SERVFAIL', 'warning', /no answer for pstn.*SERVFAIL/],
  ] as const) {
    world.dns.set({ [record.name]: entry as never });
    const [finding, ...more] = await world.changed();
    t.deepEqual(more, []);
    t.like(finding, { ...ofDkim, verdict });
    t.regex(finding!.found, found);
    t.deepEqual(finding!.records, verdict === 'failure' ? [record] : []);
  }
});

const ofDmarc = { check: 'DMARC', subject: dkimDomain } as const;
const dmarcRecords = [
  {
    type: 'TXT',
    name: `_dmarc.${dkimDomain}`,
    value: 'v=DMARC1; p=none; rua=mailto:dmarc@bounces.invalid',
  },
];

names('no DMARC', ({ dns }) => dns.set({ '_dmarc.sender.invalid': null }), {
  ...ofDmarc,
  verdict: 'warning',
  found: /^no DMARC record/,
  records: dmarcRecords,
});

names(
  'two DMARC records',
  ({ dns }) => dns.set({ '_dmarc.sender.invalid': { TXT: ['v=DMARC1; p=none', 'v=DMARC1; p=reject'] } }),
  {
    ...ofDmarc,
    verdict: 'warning',
    found: /does not have exactly one valid DMARC record/,
    records: dmarcRecords,
  },
);

names(
  'DMARC reports that nobody may send',
  ({ dns }) => dns.set({ 'sender.invalid._report._dmarc.bounces.invalid': null }),
  {
    check: 'DMARC reports',
    subject: dkimDomain,
    verdict: 'warning',
    found: /^no TXT record/,
    records: [{ type: 'TXT', name: 'sender.invalid._report._dmarc.bounces.invalid', value: 'v=DMARC1' }],
  },
);

names('tracking links that lead nowhere', ({ dns }) => dns.set({ 'links.sender.invalid': null }), {
  check: 'tracking links',
  subject: dkimDomain,
  verdict: 'warning',
  found: /^no CNAME record/,
  records: [{ type: 'CNAME', name: 'links.sender.invalid', value: hostname }],
});

test('a domain that is named: verified or not, and one that is not registered', async (t) => {
  const { db, domain, examineNow, changed } = await startDoctorWorld(t);
  await setDomainStatus(db, domain.id, 'pending', Date.now());
  t.deepEqual(await changed({ domain: dkimDomain }), []);
  const none = (await examineNow()).at(-1);
  t.like(none, { check: 'registered', subject: 'sender domains', verdict: 'warning' });
  const stranger = (await examineNow({ domain: 'stranger.invalid' })).at(-1);
  t.like(stranger, { check: 'registered', subject: 'stranger.invalid', verdict: 'failure' });
  t.regex(stranger!.advice!, /^postern domain add stranger\.invalid/);
});

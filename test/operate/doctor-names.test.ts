/** `postern doctor` on DNS, names, addresses and blocklists: when one thing alone is wrong, exactly that is named. */
import ava from 'ava';
import { names } from '../lab/scenes/doctor-names.ts';
import { dkimDomain, hostname, startDoctorWorld } from '../lab/scenes/doctor-world.ts';

/** Each world is a few servers; many of them at once would keep each other waiting. */
const test = ava.serial;

// DNS.

names(
  'one of two DNS servers is dead',
  ({ config }) => ({ config: { dnsServers: [...config.dnsServers, '127.0.0.1:9'] } }),
  {
    check: 'servers',
    subject: 'DNS',
    verdict: 'warning',
    found: /^no answer from DNS server 127\.0\.0\.1:9: nothing listens there$/,
    advice: /resolv\.conf/,
  },
);

names('answers that nobody vouches for', ({ dns }) => dns.set({ 'signed.invalid': { A: ['192.0.2.1'] } }), {
  check: 'DNSSEC',
  subject: 'DNS',
  verdict: 'warning',
  found: /does not validate/,
  advice: /unbound/,
});

// Names and addresses.

test('a hostname for private networks', async (t) => {
  const { dns, changed } = await startDoctorWorld(t);
  const name = 'mail.office.lan';
  dns.set({ [name]: { A: ['127.0.0.1'] } });
  const changes = await changed({ config: { hostname: name } });
  const finding = changes.find(({ check }) => check === 'hostname')!;
  t.like(finding, { subject: name, verdict: 'failure', found: `${name} is a name for private networks` });
  t.regex(finding.advice!, /POSTERN_HOSTNAME/);
});

const hostRecord = { type: 'A', name: hostname, value: '127.0.0.1' };

names('a hostname without an address', ({ dns }) => dns.set({ [hostname]: null }), {
  check: 'address',
  subject: hostname,
  verdict: 'failure',
  found: /^no A or AAAA record$/,
  records: [hostRecord],
});

names('a hostname that leads elsewhere', ({ dns }) => dns.set({ [hostname]: { A: ['192.0.2.9'] } }), {
  check: 'address',
  subject: hostname,
  verdict: 'failure',
  found: /^it resolves to 192\.0\.2\.9, but mail is sent from 127\.0\.0\.1$/,
  records: [hostRecord],
});

const reverse = '1.0.0.127.in-addr.arpa';
const ofPtr = {
  check: 'PTR',
  subject: '127.0.0.1',
  records: [{ type: 'PTR', name: reverse, value: hostname }],
};

names('no PTR', ({ dns }) => dns.set({ [reverse]: null }), {
  ...ofPtr,
  verdict: 'failure',
  found: /^no PTR record$/,
  advice: /^set the reverse name of 127\.0\.0\.1 to mx1/,
});

names('a PTR that does not lead back', ({ dns }) => dns.set({ [reverse]: { PTR: ['vps7.invalid'] } }), {
  ...ofPtr,
  verdict: 'failure',
  found: /^it is vps7\.invalid, which does not resolve to this address$/,
});

names(
  'a PTR that leads back under another name',
  ({ dns }) => dns.set({ [reverse]: { PTR: ['vps7.invalid'] }, 'vps7.invalid': { A: ['127.0.0.1'] } }),
  {
    ...ofPtr,
    verdict: 'warning',
    found: /^it is vps7\.invalid, which resolves to this address, but EHLO says mx1\.invalid$/,
  },
);

names('a PTR that DNS fails on', ({ dns }) => dns.set({ [reverse]: 'SERVFAIL' }), {
  check: 'PTR',
  subject: '127.0.0.1',
  verdict: 'warning',
  found: /no answer for .* PTR \(SERVFAIL\)/,
});

for (const [name, entry, subject, verdict] of [
  ['Spamhaus ZEN', '1.0.0.127.zen.spamhaus.org', '127.0.0.1', 'failure'],
  ['SpamCop', '1.0.0.127.bl.spamcop.net', '127.0.0.1', 'warning'],
  ['Barracuda', '1.0.0.127.b.barracudacentral.org', '127.0.0.1', 'warning'],
  ['Spamhaus DBL', 'sender.invalid.dbl.spamhaus.org', dkimDomain, 'failure'],
  ['Spamhaus DBL', `${hostname}.dbl.spamhaus.org`, hostname, 'failure'],
  ['Spamhaus DBL', 'bounces.invalid.dbl.spamhaus.org', 'bounces.invalid', 'failure'],
] as const) {
  names(`${subject} is on ${name}`, ({ dns }) => dns.set({ [entry]: { A: ['127.0.0.3'] } }), {
    check: name,
    subject,
    verdict,
    found: /^listed: 127\.0\.0\.3/,
    advice: new RegExp(
      `^find out at https:\\S+ why ${subject.replaceAll('.', '\\.')} is on ${name} and how to be removed`,
    ),
  });
}

names(
  'a blocklist that refuses public resolvers lists nobody',
  ({ dns }) => dns.set({ '1.0.0.127.zen.spamhaus.org': { A: ['127.255.255.254'] } }),
  {
    check: 'Spamhaus ZEN',
    subject: '127.0.0.1',
    verdict: 'skipped',
    found: /refuses this resolver \(127\.255\.255\.254: it is a public resolver\)/,
    advice: /unbound/,
  },
);

names(
  'a blocklist that does not know its test entry is not believed',
  ({ dns }) => dns.set({ '2.0.0.127.bl.spamcop.net': null }),
  { check: 'SpamCop', subject: '127.0.0.1', verdict: 'skipped', found: /own test entry/ },
);

names(
  'a resolver that invents addresses puts nobody on a list',
  ({ dns }) =>
    dns.set({
      '2.0.0.127.bl.spamcop.net': { A: ['192.0.2.80'] },
      '1.0.0.127.bl.spamcop.net': { A: ['192.0.2.80'] },
    }),
  { check: 'SpamCop', subject: '127.0.0.1', verdict: 'skipped', found: /own test entry/ },
);

names(
  'a blocklist that is out of order',
  ({ dns }) => dns.set({ '2.0.0.127.b.barracudacentral.org': 'SERVFAIL' }),
  {
    check: 'Barracuda',
    subject: '127.0.0.1',
    verdict: 'skipped',
    found: /SERVFAIL/,
  },
);

/**
 * The mails that SPF, DKIM and DMARC are judged of. Each is from a domain of its own, which `$D` stands for, with the keys `rsa` and
 * `ed`, SPF that passes and p=reject, unless the case says otherwise.
 */
import type { Zone } from '#lab/dns/dns.ts';
import { publicKey, type Selector, type Tags } from './sign.ts';

export interface Case {
  name: string;
  /** In place of the default records, by name; `spf` and `dmarc` are those of `$D` and of `_dmarc.$D`; null: none. */
  zone?: Zone;
  spf?: string | null;
  dmarc?: string | null;
  sender?: string;
  helo?: string;
  peer?: string;
  from?: string;
  /** Of the header, in place of the usual ones. */
  fields?: string[];
  body?: string;
  signatures?: (Tags & { by?: Selector })[];
  /** What happens to the mail on its way. */
  change?(mail: string): string;
  /** Why another judge differs. */
  known?: Partial<Record<Judge, string>> | undefined;
}

export type Judge = 'pyspf' | 'dkimpy' | 'OpenDKIM' | 'OpenDMARC';

const ours = '192.0.2.77';
const signed = [{}];
const key = (more: string, selector: Selector = 'rsa') => ({
  TXT: [`v=DKIM1; ${more}p=${publicKey(selector)}`],
});
const keyRecord = (text: string) => ({ 'rsa._domainkey.$D': { TXT: [text] } });

const canonicalizations = [
  'simple/simple',
  'simple/relaxed',
  'relaxed/simple',
  'relaxed/relaxed',
  'relaxed',
  'simple',
];

/** On the way; some of them a canonicalization forgives. */
const changes: Record<string, (mail: string) => string> = {
  'as sent': (mail) => mail,
  'a word of the body': (mail) => mail.replace('Hello', 'Hallo'),
  'a space at the end of a line': (mail) => mail.replace('Hello,', 'Hello, '),
  'two spaces in the body': (mail) => mail.replace('your order', 'your  order'),
  'empty lines at the end': (mail) => `${mail}\r\n\r\n`,
  'text at the end': (mail) => `${mail}More\r\n`,
  'a subject folded': (mail) => mail.replace('Subject: Your', 'Subject: Your\r\n'),
  'a name of a field in capitals': (mail) => mail.replace('Subject:', 'SUBJECT:'),
  'a subject changed': (mail) => mail.replace('Subject: Your', 'Subject: Our'),
  'another subject above': (mail) => mail.replace('From:', 'Subject: Other\r\nFrom:'),
  'another subject below': (mail) => mail.replace('\r\n\r\n', '\r\nSubject: Other\r\n\r\n'),
  'a field that is not signed': (mail) => mail.replace('From:', 'X-Other: 1\r\nFrom:'),
};

const canonical: Case[] = canonicalizations.flatMap((c) =>
  Object.entries(changes).map(([name, change]) => ({
    name: `${c}: ${name}`,
    spf: null,
    signatures: [{ c }],
    change,
  })),
);

const now = Math.floor(Date.now() / 1000);

const tags: [name: string, tags: Tags & { by?: Selector }, more?: Partial<Case>][] = [
  ['rsa-sha1', { a: 'rsa-sha1' }],
  ['Ed25519', { a: 'ed25519-sha256', s: 'ed' }],
  ['an unknown algorithm', { a: 'rsa-sha512' }],
  ['an unknown canonicalization', { c: 'nofws/simple' }],
  ['a key of 768 bits', { s: 'weak' }, { zone: { 'weak._domainkey.$D': key('', 'weak') } }],
  ['made with another key', { by: 'other' }],
  ['l= of the whole body', { l: '42' }],
  ['l= of a part', { l: '10' }],
  ['l= of a part, with text at the end', { l: '42' }, { change: changes['text at the end']! }],
  ['l=0', { l: '0' }, { change: changes['a word of the body']! }],
  ['l= beyond the body', { l: '4000' }],
  ['l= that is no number', { l: 'x' }],
  ['x= in an hour', { t: String(now - 60), x: String(now + 3600) }],
  ['x= an hour ago', { t: String(now - 7200), x: String(now - 3600) }],
  ['x= before t=', { t: String(now), x: String(now - 10) }],
  ['t= tomorrow', { t: String(now + 86_400) }],
  ['t= that is no number', { t: 'today' }],
  ['i= of the domain', { i: 'ann@$D' }],
  ['i= of a subdomain', { i: '@mail.$D' }],
  ['i= of another domain', { i: '@other.invalid' }],
  ['i= of a subdomain, t=s', { i: '@mail.$D' }, { zone: { 'rsa._domainkey.$D': key('t=s; ') } }],
  ['i= of the domain, t=s', { i: '@$D' }, { zone: { 'rsa._domainkey.$D': key('t=s; ') } }],
  ['t=y', {}, { zone: { 'rsa._domainkey.$D': key('t=y; ') } }],
  ['q=dns/txt', { q: 'dns/txt' }],
  ['q= that is unknown', { q: 'dns/other' }],
  ['without From in h=', { h: 'to:subject' }],
  ['From twice in h=', { h: 'from:from:to:subject' }],
  [
    'From twice in h=, another From',
    { h: 'from:from:to:subject' },
    { change: (mail) => mail.replace('From:', 'From: x@other.invalid\r\nFrom:') },
  ],
  ['h= of fields that are not there', { h: 'from:x-none:cc:subject' }],
  ['h= with spaces', { h: 'from : to\r\n  :subject' }],
  ['h= in capitals', { h: 'FROM:To:SUBJECT' }],
  ['h= with itself', { h: 'from:dkim-signature' }],
  ['without h=', { h: null }],
  ['without bh=', { bh: null }],
  ['without v=', { v: null }],
  ['without a=', { a: null }],
  ['without c=', { c: null }],
  ['v=2', { v: '2' }],
  ['v=1.0', { v: '1.0' }],
  ['an unknown tag', { more: '; z2=x' }],
  ['a tag twice', { more: '; d=other.invalid' }],
  ['a tag without a value', { more: '; z' }],
  ['an empty b=', { b: '' }],
  ['b= that is not Base64', { b: '!!!' }],
  ['bh= of another body', { bh: '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' }],
  ['d= in capitals', { d: '$DU' }],
  ['d= of a subdomain', { d: 'mail.$D' }, { zone: { 'rsa._domainkey.mail.$D': key('') } }],
  ['d= of another domain', { d: 'other.invalid' }],
  ['d= of a top-level domain', { d: 'invalid' }, { zone: { 'rsa._domainkey.invalid': key('') } }],
  ['without d=', { d: null }],
  ['without s=', { s: null }],
];

const keyRecords: [name: string, zone: Zone][] = [
  ['no key', { 'rsa._domainkey.$D': { A: ['192.0.2.1'] } }],
  ['a key that DNS does not give', { 'rsa._domainkey.$D': 'SERVFAIL' }],
  ['a revoked key', keyRecord('v=DKIM1; p=')],
  ['a key without v=', keyRecord(`k=rsa; p=${publicKey('rsa')}`)],
  ['a key with v= at the end', keyRecord(`k=rsa; p=${publicKey('rsa')}; v=DKIM1`)],
  ['a key with v=DKIM2', keyRecord(`v=DKIM2; p=${publicKey('rsa')}`)],
  ['a key with k=ed25519', { 'rsa._domainkey.$D': key('k=ed25519; ') }],
  ['a key with an unknown k=', { 'rsa._domainkey.$D': key('k=dsa; ') }],
  ['a key for sha1', { 'rsa._domainkey.$D': key('h=sha1; ') }],
  ['a key for sha1 and sha256', { 'rsa._domainkey.$D': key('h=sha1:sha256; ') }],
  ['a key for another service', { 'rsa._domainkey.$D': key('s=tlsrpt; ') }],
  ['a key for email', { 'rsa._domainkey.$D': key('s=email; ') }],
  ['a key for all services', { 'rsa._domainkey.$D': key('s=*; ') }],
  ['a key with notes', { 'rsa._domainkey.$D': key('n=a note; ') }],
  ['a key with an unknown tag', { 'rsa._domainkey.$D': key('z=1; ') }],
  ['a key that is no key', keyRecord('v=DKIM1; p=AAAA')],
  ['a key that is not Base64', keyRecord('v=DKIM1; p=***')],
  ['a record that is none', keyRecord('hello')],
  ['a key that a CNAME leads to', { 'rsa._domainkey.$D': { CNAME: ['key.$D'] }, 'key.$D': key('') }],
];

const body8 = 'Gr\xfc\xdfe,\r\n\r\nyour  order \t\r\n\r\n';
const signatures: Case[] = [
  { name: 'no signature' },
  { name: 'two that pass', signatures: [{}, { a: 'ed25519-sha256', s: 'ed' }] },
  { name: 'one that passes, one that does not', signatures: [{}, { bh: 'AAAA' }] },
  { name: 'one that does not, one that passes', signatures: [{ bh: 'AAAA' }, {}] },
  {
    name: 'one of another domain, one that does not pass',
    signatures: [{ d: 'other.invalid' }, { bh: 'AAAA' }],
  },
  { name: 'ten that pass', signatures: Array.from({ length: 10 }, () => ({})) },
  { name: 'a body of eight bits, simple', body: body8, signatures: [{ c: 'simple/simple' }] },
  { name: 'a body of eight bits, relaxed', body: body8, signatures: signed },
  { name: 'no body, simple', body: '', signatures: [{ c: 'simple/simple' }] },
  { name: 'no body, relaxed', body: '', signatures: signed },
  { name: 'a body of empty lines', body: '\r\n\r\n\r\n', signatures: signed },
  { name: 'a body of white space', body: ' \r\n\t\r\n', signatures: signed },
  { name: 'a From in UTF-8', from: 'Zo\xc3\xab <ann@$D>', signatures: signed },
].map((one) => ({ spf: null, ...one }));

const spf = (name: string, record: string | null, more: Partial<Case> = {}): Case => ({
  name: `SPF: ${name}`,
  spf: record,
  ...more,
});
const hosts = (count: number, more = '') => Array.from({ length: count }, (_, n) => `${more}h${n}.$D`);
const zoneOf = (names: string[], entry: (n: number) => Zone[string]): Zone =>
  Object.fromEntries(names.map((name, n) => [name, entry(n)]));
const elsewhere = { A: ['192.0.2.1'] };

const senders: Case[] = [
  spf('-all', 'v=spf1 -all'),
  spf('~all', 'v=spf1 ~all'),
  spf('?all', 'v=spf1 ?all'),
  spf('+all', 'v=spf1 +all'),
  spf('all', 'v=spf1 all'),
  spf('nothing matches', 'v=spf1'),
  spf('no record', null),
  spf('another record', 'hello'),
  spf('v=spf10', 'v=spf10 -all'),
  spf('in capitals', 'V=SPF1 IP4:192.0.2.77 -ALL'),
  spf('two records', null, { zone: { $D: { TXT: ['v=spf1 -all', 'v=spf1 +all'] } } }),
  spf('a record beside others', null, { zone: { $D: { TXT: ['hello', `v=spf1 ip4:${ours} -all`] } } }),
  spf('SERVFAIL', null, { zone: { $D: { TXT: 'SERVFAIL' } } }),
  spf('a record in two strings', `v=spf1 ${'ip4:192.0.2.1 '.repeat(30)}ip4:${ours} -all`),
  spf('spaces at the end', 'v=spf1 -all  '),
  spf('spaces between', 'v=spf1   ip4:192.0.2.77   -all'),
  spf('a tab between', 'v=spf1 ip4:192.0.2.77\t-all'),
  spf('a space in front', ' v=spf1 -all'),
  spf('characters beyond ASCII', 'v=spf1 a:grüße.invalid -all'),
  spf('ip4 of a network', 'v=spf1 ip4:192.0.2.64/27 -all'),
  spf('ip4 of another network', 'v=spf1 ip4:192.0.2.64/29 -all'),
  spf('ip4 with 33 bits', 'v=spf1 ip4:192.0.2.77/33 -all'),
  spf('ip4 with 032 bits', 'v=spf1 ip4:192.0.2.77/032 -all'),
  spf('ip4 that is none', 'v=spf1 ip4:192.0.2 -all'),
  spf('ip4 without an address', 'v=spf1 ip4 -all'),
  spf('ip4 for a client of IPv6', 'v=spf1 ip4:192.0.2.77 -all', { peer: '2001:db8::77' }),
  spf('ip6', 'v=spf1 ip6:2001:db8::/32 -all', { peer: '2001:db8::77' }),
  spf('ip6 of another network', 'v=spf1 ip6:2001:db9::/32 -all', { peer: '2001:db8::77' }),
  spf('ip6 with 129 bits', 'v=spf1 ip6:2001:db8::/129 -all', { peer: '2001:db8::77' }),
  spf('an IPv4 address in IPv6', 'v=spf1 ip4:192.0.2.77 -all', { peer: '::ffff:192.0.2.77' }),
  spf('a', null, { zone: { $D: { TXT: ['v=spf1 a -all'], A: [ours] } } }),
  spf('a of another host', 'v=spf1 a:mail.$D -all', { zone: { 'mail.$D': { A: [ours] } } }),
  spf('a of a network', 'v=spf1 a:mail.$D/24 -all', { zone: { 'mail.$D': { A: ['192.0.2.1'] } } }),
  spf('a of IPv6', 'v=spf1 a:mail.$D//64 -all', {
    zone: { 'mail.$D': { AAAA: ['2001:db8::1'] } },
    peer: '2001:db8::77',
  }),
  spf('a that DNS does not give', 'v=spf1 a:mail.$D -all', { zone: { 'mail.$D': 'SERVFAIL' } }),
  spf('a behind a CNAME', 'v=spf1 a:mail.$D -all', {
    zone: { 'mail.$D': { CNAME: ['host.$D'] }, 'host.$D': { A: [ours] } },
  }),
  spf('a without a name', 'v=spf1 a: -all'),
  spf('a of a top-level domain', 'v=spf1 a:invalid -all'),
  spf('mx', null, {
    zone: { $D: { TXT: ['v=spf1 mx -all'], MX: ['10 mail.$D'] }, 'mail.$D': { A: [ours] } },
  }),
  spf('mx of a network', 'v=spf1 mx:lists.$D/24 -all', {
    zone: { 'lists.$D': { MX: ['10 mail.$D'] }, 'mail.$D': elsewhere },
  }),
  spf('mx with ten hosts', 'v=spf1 mx:lists.$D -all', {
    zone: {
      'lists.$D': { MX: hosts(10, '10 ') },
      ...zoneOf(hosts(10), (n) => ({ A: [n === 9 ? ours : '192.0.2.1'] })),
    },
  }),
  spf('mx with eleven hosts', 'v=spf1 mx:lists.$D -all', {
    zone: { 'lists.$D': { MX: hosts(11, '10 ') }, ...zoneOf(hosts(11), () => elsewhere) },
  }),
  spf('ptr', 'v=spf1 ptr -all', {
    zone: { '80.100.51.198.in-addr.arpa': { PTR: ['mail.$D'] }, 'mail.$D': { A: ['198.51.100.80'] } },
    peer: '198.51.100.80',
  }),
  spf('ptr that is forged', 'v=spf1 ptr -all', {
    zone: { '81.100.51.198.in-addr.arpa': { PTR: ['mail.$D'] }, 'mail.$D': elsewhere },
    peer: '198.51.100.81',
  }),
  spf('exists', 'v=spf1 exists:%{ir}.%{v}.$D -all', {
    zone: { '77.2.0.192.in-addr.$D': { A: ['127.0.0.2'] } },
  }),
  spf('exists that is not there', 'v=spf1 exists:%{ir}.%{v}.$D -all'),
  spf('exists by sender', 'v=spf1 exists:%{l}.%{o}.by.$D -all', {
    zone: { 'bounces.$D.by.$D': { A: ['127.0.0.2'] } },
  }),
  spf('exists by parts', 'v=spf1 exists:%{l1r-}.%{d2}.by.$D -all', {
    zone: { 'one.$D.by.$D': { A: ['127.0.0.2'] } },
    sender: 'one-two@$D',
  }),
  spf('exists by HELO', 'v=spf1 exists:%{h}.by.$D -all', {
    zone: { 'mail.there.invalid.by.$D': { A: ['127.0.0.2'] } },
  }),
  spf('a macro that is unknown', 'v=spf1 exists:%{z}.$D -all'),
  spf('a macro that does not end', 'v=spf1 exists:%{i.$D -all'),
  spf('a percent sign alone', 'v=spf1 exists:%a.$D -all'),
  spf('exists without a name', 'v=spf1 exists -all'),
  ...(['+all', '-all', '~all', '?all'] as const).map((all) =>
    spf(`include of ${all}`, 'v=spf1 include:other.$D -all', {
      zone: { 'other.$D': { TXT: [`v=spf1 ${all}`] } },
    }),
  ),
  spf('include with a qualifier', 'v=spf1 ~include:other.$D -all', {
    zone: { 'other.$D': { TXT: ['v=spf1 +all'] } },
  }),
  spf('include without a record', 'v=spf1 include:other.$D -all', {
    zone: { 'other.$D': { TXT: ['hello'] } },
  }),
  spf('include of a name that does not exist', 'v=spf1 include:other.$D -all'),
  spf('include of a record that is wrong', 'v=spf1 include:other.$D -all', {
    zone: { 'other.$D': { TXT: ['v=spf1 foo:bar -all'] } },
  }),
  spf('include that DNS does not give', 'v=spf1 include:other.$D -all', { zone: { 'other.$D': 'SERVFAIL' } }),
  spf('include of itself', 'v=spf1 include:$D -all'),
  spf('include without a name', 'v=spf1 include: -all'),
  spf('redirect', 'v=spf1 redirect=other.$D', { zone: { 'other.$D': { TXT: [`v=spf1 ip4:${ours} -all`] } } }),
  spf('redirect that fails', 'v=spf1 redirect=other.$D', { zone: { 'other.$D': { TXT: ['v=spf1 -all'] } } }),
  spf('redirect beside all', 'v=spf1 redirect=other.$D ~all', {
    zone: { 'other.$D': { TXT: ['v=spf1 -all'] } },
  }),
  spf('redirect without a record', 'v=spf1 redirect=other.$D'),
  spf('redirect that DNS does not give', 'v=spf1 redirect=other.$D', { zone: { 'other.$D': 'SERVFAIL' } }),
  spf('redirect to itself', 'v=spf1 redirect=$D'),
  spf('redirect twice', 'v=spf1 redirect=a.$D redirect=b.$D', {
    zone: { 'a.$D': { TXT: ['v=spf1 +all'] }, 'b.$D': { TXT: ['v=spf1 +all'] } },
  }),
  spf('redirect without a name', 'v=spf1 redirect='),
  spf('redirect by a macro', 'v=spf1 redirect=%{l}.$D', { zone: { 'bounces.$D': { TXT: ['v=spf1 +all'] } } }),
  spf('ten look-ups', `v=spf1 ${hosts(10, 'a:').join(' ')} +all`, {
    zone: zoneOf(hosts(10), () => elsewhere),
  }),
  spf('eleven look-ups', `v=spf1 ${hosts(11, 'a:').join(' ')} +all`, {
    zone: zoneOf(hosts(11), () => elsewhere),
  }),
  spf('eleven look-ups in includes', 'v=spf1 include:one.$D include:two.$D -all', {
    zone: {
      'one.$D': { TXT: [`v=spf1 ${hosts(5, 'a:').join(' ')}`] },
      'two.$D': { TXT: [`v=spf1 ${hosts(4, 'a:').join(' ')} +all`] },
      ...zoneOf(hosts(5), () => elsewhere),
    },
  }),
  spf('two void look-ups', `v=spf1 ${hosts(2, 'a:').join(' ')} +all`),
  spf('three void look-ups', `v=spf1 ${hosts(3, 'a:').join(' ')} +all`),
  spf('two void look-ups, one for IPv6 only', `v=spf1 ${hosts(3, 'a:').join(' ')} +all`, {
    zone: { 'h0.$D': { AAAA: ['2001:db8::1'] } },
  }),
  spf('a mechanism that is unknown', 'v=spf1 foo:bar -all'),
  spf('a mechanism that is unknown, behind a match', `v=spf1 ip4:${ours} foo:bar -all`),
  spf('a wrong address behind a match', `v=spf1 ip4:${ours} ip4:1.2.3 -all`),
  spf('a modifier that is unknown', `v=spf1 foo=bar ip4:${ours} -all`),
  spf('exp', 'v=spf1 exp=why.$D -all', { zone: { 'why.$D': { TXT: ['No'] } } }),
  spf('exp that is not there', 'v=spf1 exp=why.$D -all'),
  spf('exp twice', 'v=spf1 exp=why.$D exp=why.$D -all'),
  spf('all with a name', 'v=spf1 all:$D'),
  spf('a comma between', 'v=spf1 ip4:192.0.2.77, -all'),
  spf('the null sender', 'v=spf1 -all', {
    sender: '',
    helo: 'mail.$D',
    zone: { 'mail.$D': { TXT: [`v=spf1 ip4:${ours} -all`] } },
  }),
  spf('the null sender, HELO without a record', 'v=spf1 -all', { sender: '', helo: 'mail.$D' }),
  spf('the null sender, HELO that fails', 'v=spf1 -all', {
    sender: '',
    helo: 'mail.$D',
    zone: { 'mail.$D': { TXT: ['v=spf1 -all'] } },
  }),
  spf('the null sender, HELO with an address', 'v=spf1 -all', { sender: '', helo: '[192.0.2.77]' }),
  spf('the null sender, HELO of one label', 'v=spf1 -all', { sender: '', helo: 'localhost' }),
  spf('a sender in capitals', `v=spf1 ip4:${ours} -all`, { sender: 'Bounces@$DU' }),
  spf('a sender at a domain that does not exist', null, { sender: 'x@none.$D' }),
  spf('a sender in quotes', `v=spf1 ip4:${ours} -all`, { sender: '"a b@c"@$D' }),
  spf('a sender at an address', null, { sender: 'x@[192.0.2.77]' }),
];

const dmarc = (name: string, record: string | null, more: Partial<Case> = {}): Case => ({
  name: `DMARC: ${name}`,
  dmarc: record,
  ...more,
});

/** Relaxed and strict; the From's domain, one below, one above, another. */
const alignments: Case[] = ['adkim=r; aspf=r', 'adkim=s; aspf=s', 'adkim=s', 'aspf=s'].flatMap((modes) =>
  ['$D', 'mail.$D', 'other.invalid'].flatMap((domain) => [
    dmarc(`${modes}: SPF of ${domain}`, `v=DMARC1; p=reject; ${modes}`, {
      sender: `x@${domain}`,
      spf: null,
      zone: passing(domain),
    }),
    dmarc(`${modes}: DKIM of ${domain}`, `v=DMARC1; p=reject; ${modes}`, {
      spf: null,
      signatures: [{ d: domain }],
      zone: { [`rsa._domainkey.${domain}`]: key('') },
    }),
    dmarc(`${modes}: From below, DKIM of ${domain}`, `v=DMARC1; p=reject; ${modes}`, {
      from: 'ann@shop.$D',
      spf: null,
      signatures: [{ d: domain }],
      zone: { [`rsa._domainkey.${domain}`]: key('') },
    }),
  ]),
);

function passing(domain: string): Zone {
  return { [domain]: { TXT: ['v=spf1 +all'] } };
}

const failing = { spf: 'v=spf1 -all' };
const below = { ...failing, from: 'ann@shop.$D' };

const policies: Case[] = [
  ...['none', 'quarantine', 'reject'].map((p) => dmarc(`p=${p}`, `v=DMARC1; p=${p}`, failing)),
  ...['none', 'quarantine', 'reject'].map((sp) =>
    dmarc(`sp=${sp}, From below`, `v=DMARC1; p=reject; sp=${sp}`, below),
  ),
  dmarc('sp=none, From not below', 'v=DMARC1; p=reject; sp=none', failing),
  dmarc('p= for a From below', 'v=DMARC1; p=quarantine', below),
  dmarc('a record of its own below', 'v=DMARC1; p=reject', {
    ...below,
    zone: { '_dmarc.shop.$D': { TXT: ['v=DMARC1; p=none'] } },
  }),
  dmarc('a record between', 'v=DMARC1; p=reject', {
    ...failing,
    from: 'ann@a.shop.$D',
    zone: { '_dmarc.shop.$D': { TXT: ['v=DMARC1; p=none'] } },
  }),
  dmarc('pct=0', 'v=DMARC1; p=reject; pct=0', failing),
  dmarc('pct=100', 'v=DMARC1; p=reject; pct=100', failing),
  dmarc('pct=50 that passes', 'v=DMARC1; p=reject; pct=50'),
  dmarc('t=y', 'v=DMARC1; p=reject; t=y', failing),
  dmarc('np=reject, From below', 'v=DMARC1; p=none; np=reject', below),
  dmarc('no record', null),
  dmarc('no record that fails', null, failing),
  dmarc('SERVFAIL', null, { ...failing, zone: { '_dmarc.$D': 'SERVFAIL' } }),
  dmarc('two records', null, {
    ...failing,
    zone: { '_dmarc.$D': { TXT: ['v=DMARC1; p=reject', 'v=DMARC1; p=none'] } },
  }),
  dmarc('a record beside others', null, { zone: { '_dmarc.$D': { TXT: ['hello', 'v=DMARC1; p=reject'] } } }),
  dmarc('another record', 'hello', failing),
  dmarc('v=DMARC2', 'v=DMARC2; p=reject', failing),
  dmarc('v= in small letters', 'v=dmarc1; p=reject', failing),
  dmarc('v= not first', 'p=reject; v=DMARC1', failing),
  dmarc('without p=', 'v=DMARC1; rua=mailto:x@$D', failing),
  dmarc('without p= and rua=', 'v=DMARC1; adkim=s', failing),
  dmarc('an unknown p=', 'v=DMARC1; p=refuse', failing),
  dmarc('an unknown p=, with rua=', 'v=DMARC1; p=refuse; rua=mailto:x@$D', failing),
  dmarc('an unknown sp=', 'v=DMARC1; p=reject; sp=refuse', failing),
  dmarc('p= in capitals', 'v=DMARC1; p=REJECT', failing),
  dmarc('an unknown adkim=', 'v=DMARC1; p=reject; adkim=x', failing),
  dmarc('an unknown tag', 'v=DMARC1; p=reject; foo=bar', failing),
  dmarc('a tag twice', 'v=DMARC1; p=none; p=reject', failing),
  dmarc('p= not second', 'v=DMARC1; adkim=r; p=reject', failing),
  dmarc('spaces', 'v = DMARC1 ;p = reject ; ', failing),
  dmarc('without spaces', 'v=DMARC1;p=reject', failing),
  dmarc(
    'a record in two strings',
    `v=DMARC1; p=reject; rua=${Array.from({ length: 15 }, (_, n) => `mailto:reports${n}@$D`).join()}`,
    failing,
  ),
  dmarc('behind a CNAME', null, {
    ...failing,
    zone: { '_dmarc.$D': { CNAME: ['policy.$D'] }, 'policy.$D': { TXT: ['v=DMARC1; p=reject'] } },
  }),
  dmarc('SPF that softly fails', 'v=DMARC1; p=reject', { spf: 'v=spf1 ~all' }),
  dmarc('SPF that is wrong', 'v=DMARC1; p=reject', { spf: 'v=spf1 foo -all' }),
  dmarc('the null sender, HELO aligned', 'v=DMARC1; p=reject', {
    sender: '',
    helo: 'mail.$D',
    zone: passing('mail.$D'),
  }),
  dmarc('the null sender, HELO of another', 'v=DMARC1; p=reject', {
    sender: '',
    zone: passing('mail.there.invalid'),
  }),
];

const froms: [name: string, fields: string[]][] = [
  ['a name with an address', ['From: "x@other.invalid" <ann@$D>']],
  ['a comment with an address', ['From: ann@$D (x@other.invalid)']],
  ['two of one domain', ['From: ann@$D, bob@$D']],
  ['two of different domains', ['From: ann@$D, bob@other.invalid']],
  ['two fields of one domain', ['From: ann@$D', 'From: bob@$D']],
  ['two fields of different domains', ['From: ann@$D', 'From: bob@other.invalid']],
  ['no field', ['Sender: ann@$D']],
  ['an empty field', ['From: ']],
  ['no address', ['From: Ann']],
  ['an empty address', ['From: Ann <>']],
  ['a group', ['From: Team: ann@$D, bob@$D;']],
  ['an empty group', ['From: Team:;']],
  ['capitals', ['FROM: Ann <ANN@$DU>']],
  ['folded', ['From: Ann\r\n\t<ann@$D>']],
  ['a dot at the end', ['From: ann@$D.']],
  ['quotes', ['From: "a@b"@$D']],
  ['an address for a domain', ['From: ann@[192.0.2.77]']],
  ['a route', ['From: <@other.invalid:ann@$D>']],
  ['two at-signs', ['From: <ann@other.invalid@$D>']],
  ['a space before the colon', ['From : ann@$D']],
  ['a name in encoded words', ['From: =?utf-8?q?x=40other.invalid?= <ann@$D>']],
  ['text after the address', ['From: <ann@$D> x@other.invalid']],
];

/** Why another judge finds something else, by the name of the case. */
const sha1 = 'RFC 8301 section 3.1: no signature by rsa-sha1 is valid';
const leeway = 'dkimpy gives expired signatures 10 hours';
const future = 'RFC 6376 section 3.5 leaves it to the verifier; a clock that is wrong is no forgery';
const strictFlag = 'dkimpy does not know t=s (RFC 6376 section 3.6.1)';
const noFrom = 'RFC 6376 section 5.4: From must be signed';
const duplicate = 'RFC 6376 section 3.2: a list with a tag twice is not valid';
const oneLabel = 'RFC 6376 section 3.5: d= has at least two labels';
const versionFirst = 'RFC 6376 section 3.6.1: v= must be the first tag of a key';
const hashes = 'dkimpy does not know h= of a key (RFC 6376 section 3.6.1)';
const helo = 'OpenDMARC takes no SPF of HELO from others; RFC 9989 section 5.3.2 does for the null sender';
const strictly = 'OpenDMARC 1.4.2 takes a subdomain in strict mode';
const severalFrom =
  'a mail with several From fields has no one author (RFC 9989 section 5.3.1): a reader shows any of them';
const unreadFrom =
  'no verdict either way: ours says that From cannot be read, OpenDMARC that there is no policy';
const malformed = 'OpenDKIM judges no mail whose From is not valid; nothing is aligned with it';
const obsolete = 'RFC 5322 section 4.5 has it, and RFC 6376 section 3.4.2 deletes it';
const noPolicy =
  'RFC 9989 section 4.10.1: without a policy and rua= there is no record; with rua=, it is p=none';

const reasons: Record<string, Case['known']> = {
  'signature: rsa-sha1': { dkimpy: sha1, OpenDKIM: sha1, OpenDMARC: sha1 },
  'signature: l= beyond the body': {
    OpenDKIM: 'the hash is of the whole body: nothing can be added or taken away',
  },
  'signature: x= an hour ago': { dkimpy: leeway, OpenDMARC: leeway },
  'signature: x= before t=': { dkimpy: leeway, OpenDMARC: leeway },
  'signature: t= tomorrow': { dkimpy: future, OpenDKIM: future, OpenDMARC: future },
  'signature: i= of a subdomain, t=s': { dkimpy: strictFlag, OpenDMARC: strictFlag },
  'signature: without From in h=': { dkimpy: noFrom, OpenDMARC: noFrom },
  'signature: From twice in h=, another From': { OpenDMARC: severalFrom },
  'signature: a tag twice': { OpenDKIM: duplicate },
  'signature: d= of a top-level domain': { dkimpy: oneLabel, OpenDKIM: oneLabel, OpenDMARC: oneLabel },
  'signature: a key with v= at the end': {
    dkimpy: versionFirst,
    OpenDKIM: versionFirst,
    OpenDMARC: versionFirst,
  },
  'signature: a key with k=ed25519': {
    OpenDKIM: 'RFC 6376 section 6.1.2: the type of the key must be that of the signature',
  },
  'signature: a key for sha1': { dkimpy: hashes, OpenDMARC: hashes },
  'SPF: a macro that does not end': { pyspf: 'RFC 7208 section 4.6: a wrong syntax anywhere is a permerror' },
  'SPF: the null sender': { OpenDMARC: helo },
  'SPF: a sender in quotes': {
    pyspf: 'pyspf splits at the first @',
    OpenDMARC: 'pyspf splits at the first @',
  },
  'DMARC: adkim=s; aspf=s: SPF of mail.$D': { OpenDMARC: strictly },
  'DMARC: adkim=s; aspf=s: DKIM of mail.$D': { OpenDMARC: strictly },
  'DMARC: adkim=s: DKIM of mail.$D': { OpenDMARC: strictly },
  'DMARC: aspf=s: SPF of mail.$D': { OpenDMARC: strictly },
  'DMARC: t=y': { OpenDMARC: 'OpenDMARC does not know t= (RFC 9989 section 4.7)' },
  'DMARC: np=reject, From below': { OpenDMARC: 'OpenDMARC does not know np= (RFC 9989 section 4.7)' },
  'DMARC: SERVFAIL': {
    OpenDMARC: 'OpenDMARC takes it for no record; RFC 9989 section 4.10: a temporary error',
  },
  'DMARC: two records': { OpenDMARC: 'RFC 9989 section 4.10: several records are none' },
  'DMARC: a record beside others': { OpenDMARC: 'OpenDMARC reads the first TXT record only' },
  'DMARC: v=DMARC2': { OpenDMARC: 'RFC 9989 section 4.10: a record of another version is none' },
  'DMARC: v= not first': { OpenDMARC: 'RFC 9989 section 4.7: v= must be the first tag' },
  'DMARC: without p=': { OpenDMARC: noPolicy },
  'DMARC: without p= and rua=': { OpenDMARC: noPolicy },
  'DMARC: an unknown p=': { OpenDMARC: noPolicy },
  'DMARC: an unknown p=, with rua=': { OpenDMARC: noPolicy },
  'DMARC: an unknown sp=': { OpenDMARC: noPolicy },
  'DMARC: an unknown adkim=': { OpenDMARC: 'RFC 9989 section 4.7: what is not known has its default' },
  'DMARC: a tag twice': { OpenDMARC: duplicate },
  'DMARC: spaces': { OpenDMARC: 'RFC 9989 section 4.8 allows white space around =' },
  'DMARC: the null sender, HELO aligned': { OpenDMARC: helo },
  'From: a space before the colon': { dkimpy: obsolete, OpenDKIM: obsolete },
  'From: two of different domains': { OpenDMARC: unreadFrom },
  'From: two fields of one domain': { dkimpy: severalFrom, OpenDMARC: severalFrom },
  'From: two fields of different domains': { dkimpy: severalFrom, OpenDMARC: severalFrom },
  'From: no field': { OpenDKIM: malformed },
  'From: an empty field': { OpenDKIM: malformed },
  'From: no address': { OpenDKIM: malformed, OpenDMARC: unreadFrom },
  'From: an empty address': { OpenDKIM: malformed, OpenDMARC: unreadFrom },
  'From: an empty group': { OpenDKIM: malformed },
  'From: a dot at the end': { OpenDMARC: 'RFC 5322 section 3.4.1: no address ends with a dot' },
  'From: an address for a domain': { OpenDMARC: unreadFrom },
  'From: text after the address': {
    OpenDMARC: 'RFC 5322 section 3.4: no such address; readers differ in what they show',
  },
};

const all: Case[] = [
  ...canonical,
  ...tags.map(([name, one, more]) => ({ name: `signature: ${name}`, spf: null, signatures: [one], ...more })),
  ...keyRecords.map(([name, zone]) => ({ name: `signature: ${name}`, spf: null, signatures: signed, zone })),
  ...signatures.map((one) => ({ ...one, name: `signatures: ${one.name}` })),
  ...senders,
  ...alignments,
  ...policies,
  ...froms.map(([name, fields]) => ({ name: `From: ${name}`, fields, signatures: signed })),
];

export const cases = all.map((one) => ({ ...one, known: reasons[one.name] }));

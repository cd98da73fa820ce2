/** DNS records as text of a zone file, and the records of the server judged by what a DNS server answers. */
import test from 'ava';
import { checkRecords } from '#accounts/check-records.ts';
import { serverRecords } from '#accounts/server-records.ts';
import { zoneText } from '#accounts/zone-text.ts';
import { startDns } from '#lab/dns/dns.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';

const names = { hostname: 'mail.example.org', returnPathDomain: 'mail.example.org' };

test('every name is fully qualified, and each group says in whose zone it belongs', (t) => {
  const records = [
    ...serverRecords(names, ['192.0.2.10', '2001:db8::10']),
    { type: 'CNAME', name: 'links.example.com', value: 'mail.example.org' },
  ];
  t.is(
    zoneText(records),
    `; in the zone of example.org
mail.example.org. 3600 IN A 192.0.2.10
mail.example.org. 3600 IN AAAA 2001:db8::10
mail.example.org. 3600 IN MX 10 mail.example.org.
mail.example.org. 3600 IN TXT "v=spf1 a:mail.example.org ~all"

; set by the provider of the address (reverse DNS, or the machine's panel)
10.2.0.192.in-addr.arpa. 3600 IN PTR mail.example.org.
0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa. 3600 IN PTR mail.example.org.

; in the zone of example.com
links.example.com. 3600 IN CNAME mail.example.org.
`,
  );
});

test('a TXT value is split at 255 bytes, and what would end a string is escaped', (t) => {
  const line = (value: string) => zoneText([{ type: 'TXT', name: 'example.com', value }]).split('\n')[1];
  const key = 'k'.repeat(300);
  const before = 'example.com. 3600 IN TXT';
  t.is(line(key), `${before} "${'k'.repeat(255)}" "${'k'.repeat(45)}"`);
  t.is(line('k'.repeat(255)), `${before} "${'k'.repeat(255)}"`);
  t.is(line(''), `${before} ""`);
  t.is(line('a"b\\c\nd;é'), String.raw`${before} "a\034b\092c\010d;\195\169"`);
  // Two bytes of UTF-8 at the border: each string is counted in bytes.
  t.is(line(`${'k'.repeat(254)}é`), String.raw`${before} "${'k'.repeat(254)}\195" "\169"`);
});

test('the records of the server: there, of another machine, and missing', async (t) => {
  const dns = await startDns({
    'mail.example.org': {
      A: ['192.0.2.10'],
      AAAA: ['2001:db8::99'],
      TXT: ['v=spf1 a:mail.example.org -all'],
    },
    '10.2.0.192.in-addr.arpa': { PTR: ['Mail.Example.ORG'] },
    '0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa': { PTR: ['vps.example.net'] },
  });
  t.teardown(() => dns.close());
  const records = serverRecords(names, ['192.0.2.10', '2001:db8:0:0::10']);
  const checked = await checkRecords(records, createResolver([dns.address]));
  t.deepEqual(
    checked.map(({ type, ok }) => `${type} ${ok}`),
    ['A true', 'AAAA false', 'PTR true', 'PTR false', 'MX false', 'TXT true'],
  );
  t.regex(checked[1]!.problem!, /leads to 2001:db8::99, not to this server. Add 2001:db8:0:0::10/);
  t.regex(checked[3]!.problem!, /^The reverse name is vps\.example\.net\. Change it to mail\.example\.org/);
  t.deepEqual([checked[4]!.found, checked[4]!.problem], [[], null]);
});

/** `postern doctor` on DNS, names, addresses and blocklists: when one thing alone is wrong, exactly that is named. */
import ava from 'ava';
import type { Zone } from '#lab/dns/dns.ts';
import { names } from '#lab/scenes/doctor-names.ts';
import { startDoctorWorld } from '#lab/scenes/doctor-world.ts';
import { table } from '#lab/table.ts';
import type { Finding } from '#operate/doctor/finding.ts';

/** Each world is a few servers; many of them at once would keep each other waiting. */
const test = ava.serial;

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

test('a hostname for private networks', async (t) => {
  const { dns, changed } = await startDoctorWorld(t);
  const name = 'mail.office.lan';
  dns.set({ [name]: { A: ['127.0.0.1'] } });
  const changes = await changed({ config: { hostname: name } });
  const finding = changes.find(({ check }) => check === 'hostname')!;
  t.like(finding, { subject: name, verdict: 'failure', found: `${name} is a name for private networks` });
  t.regex(finding.advice!, /POSTERN_HOSTNAME/);
});

type Row = [
  title: string,
  zone: Zone,
  check: string,
  subject: string,
  verdict: Finding['verdict'],
  found: RegExp,
  advice?: RegExp,
  records?: [type: string, name: string, value: string][],
];

for (const [title, zone, check, subject, verdict, found, advice, published] of table<Row>(
  'operate/doctor-dns',
)) {
  const records = published?.map(([type, name, value]) => ({ type, name, value }));
  names(title, ({ dns }) => dns.set(zone), {
    check,
    subject,
    verdict,
    found,
    advice,
    ...(records && { records: records as Finding['records'] }),
  });
}

/**
 * DMARC and TLS reports as reporters really send them, and what is kept of those that cannot be read. From bug reports against
 * parsers of reports (parsedmarc, OpenDMARC, dmarcts-report-parser, postmaster tools).
 */
import { crc32, deflateRawSync, gzipSync } from 'node:zlib';
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { startReturns } from '#lab/scenes/returns.ts';
import { readMail } from '#mail/returned/parse/parse-bounce.ts';

const xml = (domain = 'shop.example', before = '', after = '') =>
  `<?xml version="1.0" encoding="UTF-8"?>\n${before}<feedback><report_metadata><org_name>Reporter</org_name>` +
  '<report_id>4711</report_id><date_range><begin>1795132800</begin><end>1795219199</end></date_range></report_metadata>' +
  `<policy_published><domain>${domain}</domain><p>none</p></policy_published><record><row><source_ip>192.0.2.1` +
  '</source_ip><count>3</count><policy_evaluated><disposition>none</disposition><dkim>pass</dkim><spf>fail</spf>' +
  `</policy_evaluated></row><identifiers><header_from>shop.example</header_from></identifiers></record></feedback>${after}`;

const json = (domain = 'shop.example', sessions: unknown = 7) => ({
  'organization-name': 'Reporter',
  'report-id': '4711',
  'date-range': { 'start-datetime': '2026-11-20T00:00:00Z', 'end-datetime': '2026-11-20T23:59:59Z' },
  policies: [
    {
      policy: { 'policy-type': 'sts', 'policy-domain': domain },
      summary: { 'total-successful-session-count': sessions, 'total-failure-session-count': 0 },
    },
  ],
});

interface Entry {
  name: string;
  data: Buffer | string;
  /** The sizes follow the data (as a program writes that streams). */
  isStreamed?: boolean;
}

/** A zip as the format's specification (APPNOTE.TXT) has it, so that each oddity can be written. */
function zip(...entries: Entry[]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, data, isStreamed } of entries) {
    const packed = deflateRawSync(data);
    const sizes = Buffer.alloc(12);
    sizes.writeUInt32LE(crc32(data), 0);
    sizes.writeUInt32LE(packed.length, 4);
    sizes.writeUInt32LE(Buffer.byteLength(data), 8);
    const common = Buffer.alloc(10);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(isStreamed ? 8 : 0, 2);
    common.writeUInt16LE(8, 4);
    const names = Buffer.alloc(4);
    names.writeUInt16LE(Buffer.byteLength(name), 0);
    const local = [
      Buffer.from('PK\x03\x04'),
      common,
      isStreamed ? Buffer.alloc(12) : sizes,
      names,
      Buffer.from(name),
    ];
    const after = isStreamed ? [Buffer.from('PK\x07\x08'), sizes] : [];
    const file = Buffer.concat([...local, packed, ...after]);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    directory.push(
      Buffer.concat([
        Buffer.from('PK\x01\x02'),
        Buffer.from([20, 0]),
        common,
        sizes,
        names,
        place,
        Buffer.from(name),
      ]),
    );
    parts.push(file);
    offset += file.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(central.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, central, Buffer.from('PK\x05\x06'), end]);
}

interface Shape {
  /** The part's own fields. */
  fields?: string[];
  lineLength?: number;
}

function mail(data: Buffer | string, { fields, lineLength = 76 }: Shape = {}): Buffer {
  const base64 = Buffer.from(data).toString('base64');
  const lines = base64.match(new RegExp(`.{1,${lineLength}}`, 'g')) ?? [];
  const own = fields ?? ['Content-Type: application/octet-stream; name="report"'];
  return Buffer.from(
    [
      'From: reports@reporter.example',
      'To: dmarc@postern.invalid',
      'Subject: Report Domain: shop.example',
      'MIME-Version: 1.0',
      'Content-Type: multipart/mixed; boundary=m',
      ...['', '--m', 'Content-Type: text/plain', '', 'This is a report.', '--m'],
      ...[...own, 'Content-Transfer-Encoding: base64', '', ...lines, '--m--', ''],
    ].join('\r\n'),
  );
}

function forwarded(inner: Buffer, encoding = '7bit'): Buffer {
  const head =
    'From: admin@shop.example\r\nSubject: Fwd: report\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=f\r\n\r\n' +
    `--f\r\nContent-Type: text/plain\r\n\r\nfyi\r\n--f\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n`;
  const body =
    encoding === 'base64' ? Buffer.from(inner.toString('base64').replace(/.{76}/g, '$&\r\n')) : inner;
  return Buffer.concat([Buffer.from(head), body, Buffer.from('\r\n--f--\r\n')]);
}

const utf16 = (text: string, isBig = false) =>
  isBig ? Buffer.from(text, 'utf16le').swap16() : Buffer.from(text, 'utf16le');
const gz = gzipSync(xml());
const named = { name: 'shop.example!1.xml', data: xml() };
/** A gzip with each optional field of its header. */
const decorated = Buffer.concat([
  Buffer.from([0x1f, 0x8b, 8, 4 + 8 + 16, 0, 0, 0, 0, 0, 3, 2, 0, 0x61, 0x62]),
  Buffer.from('a name\0a comment\0'),
  gz.subarray(10),
]);

const readable: [what: string, bytes: Buffer][] = [
  ['gzip', mail(gz)],
  ['gzip and a line end', mail(Buffer.concat([gz, Buffer.from('\r\n')]))],
  ['gzip and garbage', mail(Buffer.concat([gz, Buffer.from('<html>virus checked</html>')]))],
  ['gzip and zeros', mail(Buffer.concat([gz, Buffer.alloc(512)]))],
  ['gzip in two members', mail(Buffer.concat([gzipSync(xml().slice(0, 300)), gzipSync(xml().slice(300))]))],
  ['gzip and half a member', mail(Buffer.concat([gz, Buffer.from([0x1f, 0x8b])]))],
  ['gzip with a name and a comment', mail(decorated)],
  ['gzip twice', mail(gzipSync(gz))],
  ['zip', mail(zip(named))],
  ['zip with a note first', mail(zip({ name: 'readme.txt', data: 'hello' }, named))],
  ['zip with a folder first', mail(zip({ name: 'reports/', data: '' }, named))],
  ['zip with an odd name', mail(zip({ name: '..\\..\\C:\\shop.xml', data: xml() }))],
  ['zip with a data descriptor', mail(zip({ ...named, isStreamed: true }))],
  ['zip and garbage', mail(Buffer.concat([zip(named), Buffer.from('\r\nchecked')]))],
  ['gzip in zip', mail(zip({ name: 'shop.xml.gz', data: gz }))],
  ['forwarded', forwarded(mail(gz))],
  ['forwarded twice', forwarded(forwarded(mail(gz)))],
  ['forwarded in base64', forwarded(mail(gz), 'base64')],
  ['UTF-16 with a byte order mark', mail(utf16(`\ufeff${xml().replace('UTF-8', 'UTF-16')}`))],
  ['UTF-16 without one', mail(utf16(xml().replace('UTF-8', 'UTF-16')))],
  ['UTF-16, big', mail(utf16(`\ufeff${xml()}`, true))],
  ['UTF-16 in gzip', mail(gzipSync(utf16(`\ufeff${xml()}`)))],
  ['UTF-8 that says UTF-16', mail(xml().replace('UTF-8', 'UTF-16'))],
  [
    'Latin-1',
    mail(Buffer.from(xml().replace('UTF-8', 'ISO-8859-1').replace('Reporter', 'R\xe9porter'), 'latin1')),
  ],
  ['an encoding that nobody knows', mail(xml().replace('UTF-8', 'x-unknown'))],
  ['a byte order mark', mail(`\ufeff${xml()}`)],
  ['white space first', mail(`\r\n\n  ${xml()}`)],
  ['a final dot', mail(xml('shop.example.'))],
  ['capitals', mail(xml('SHOP.Example'))],
  ['a wrapping element', mail(xml('shop.example', '<dmarc><report>', '</report></dmarc>'))],
  ['a prefix', mail(xml().replaceAll(/<(\/?)(?=[a-z])/g, '<$1d:'))],
  ['tags in capitals', mail(xml().replaceAll(/<\/?[a-z_]+/g, (tag) => tag.toUpperCase()))],
  ['no type of the part', mail(gz, { fields: ['Content-Disposition: attachment; filename=r.xml.gz'] })],
  ['no fields of the part', mail(gz, { fields: [] })],
  ['the type of a text', mail(gz, { fields: ['Content-Type: text/plain; name=r.xml.gz'] })],
  ['lines of base64 that are too long', mail(gz, { lineLength: 4000 })],
  ['lines of base64 of odd lengths', mail(gz, { lineLength: 61 })],
  ['the report as the text', Buffer.from(`Subject: r\r\nContent-Type: text/xml\r\n\r\n${xml()}`)],
  ['JSON', mail(JSON.stringify(json()))],
  ['JSON in gzip and a line end', mail(Buffer.concat([gzipSync(JSON.stringify(json())), Buffer.from('\n')]))],
  ['JSON with a byte order mark', mail(`\ufeff${JSON.stringify(json())}`)],
  ['JSON in UTF-16', mail(utf16(`\ufeff${JSON.stringify(json())}`))],
  ['JSON with a final dot', mail(JSON.stringify(json('Shop.example.')))],
  ['JSON in an array', mail(JSON.stringify([json()]))],
  ['JSON in a member', mail(JSON.stringify({ report: json() }))],
  ['JSON with counts as text', mail(JSON.stringify(json('shop.example', '7')))],
];

for (const [what, bytes] of readable) {
  test(`read: ${what}`, async (t) => {
    const reading = await readMail(bytes, 'reports');
    if (reading.kind !== 'report') return t.fail(JSON.stringify(reading));
    const { kind, domain, totals } = reading.report;
    t.is(domain, 'shop.example');
    if (kind === 'dmarc') t.is(reading.report.totals.messages, 3);
    else t.deepEqual(totals, { sessions: 7, failed: 0 });
  });
}

const bomb = gzipSync(Buffer.alloc(20 * 1024 * 1024, 0x20));
const unreadable: [what: string, bytes: Buffer, why: RegExp][] = [
  ['a cut gzip', mail(gz.subarray(0, -40)), /gzip data is damaged/],
  ['a gzip of nothing', mail(gz.subarray(0, 5)), /gzip data is damaged/],
  ['a bomb', mail(bomb), /larger than 8 MiB/],
  [
    'bombs one after the other',
    mail(Buffer.concat([gzipSync(Buffer.alloc(5_000_000)), gzipSync(Buffer.alloc(5_000_000))])),
    /larger than 8 MiB/,
  ],
  ['a bomb in a bomb', mail(zip({ name: 'a.gz', data: bomb })), /larger than 8 MiB/],
  ['packed without end', mail(gzipSync(gzipSync(gzipSync(gz)))), /packed too many times/],
  ['a cut zip', mail(zip(named).subarray(0, 100)), /zip archive is damaged/],
  ['an empty zip', mail(zip()), /archive is empty/],
  ['another XML', mail('<?xml version="1.0"?><rss/>'), /no element "feedback"/],
  ['no XML', mail('<feedback'), /XML|feedback/],
  ['no domain', mail(xml('')), /no valid "domain"/],
  ['no metadata', mail('<feedback><policy_published/></feedback>'), /report_metadata/],
  ['no JSON', mail('{"policies": ['), /JSON cannot be parsed/],
  ['JSON without policies', mail('{"policies": []}'), /"policies"/],
  ['a picture', mail(Buffer.from('\x89PNG\r\n')), /neither XML nor JSON/],
  ['a letter', Buffer.from('Subject: Hello\r\n\r\nDear postmaster'), /no attachment/],
];

for (const [what, bytes, why] of unreadable) {
  test(`kept with the reason: ${what}`, async (t) => {
    const reading = await readMail(bytes, 'reports');
    if (reading.kind !== 'letter') return t.fail(JSON.stringify(reading));
    t.regex(reading.why!, /^no report can be read: /);
    t.regex(reading.why!, why);
  });
}

test('what cannot be read is listed with its reason', async (t) => {
  const world = await startReturns(t);
  await world.comesBack('dmarc@postern.invalid', mail('<?xml version="1.0"?><rss/>'), 'r@reporter.example');
  const { json: list, cli } = cliOf(t, world);
  const [kept] = await list('returned list');
  t.deepEqual(await list('inbound list'), [kept], 'by its name until 0.9');
  t.like(kept, { kind: 'letter', recipient: 'dmarc@postern.invalid' });
  t.regex(kept.reading.why, /no element "feedback"/);
  t.regex(
    (await cli('returned list')).stdout.toString(),
    /no report can be read: the XML has no element "feedback"/,
  );
});

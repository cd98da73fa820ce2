/** Our two fields on top of a received mail, and those that came in under our name. */
import test from 'ava';
import { emptySummary } from '#lab/received.ts';
import { countHops, headerLength, traceFields, withoutForged } from '#mail/received/trace-fields.ts';

const hostname = 'mx.x.invalid';
const trace = {
  hostname,
  id: 'one',
  at: Date.parse('2026-11-28T10:00:00Z'),
  helo: 'there.invalid',
  peer: '192.0.2.1',
  isTls: true,
  isUtf8: false,
  recipients: ['orders@x.invalid'],
  sender: 'ann@there.invalid',
};

test('both fields, as their standards write them', (t) => {
  const { verdicts } = emptySummary;
  t.is(
    traceFields(trace, verdicts).toString(),
    [
      'Authentication-Results: mx.x.invalid;',
      ' spf=none;',
      ' dkim=none;',
      ' dmarc=none;',
      ' arc=none',
      'Received: from there.invalid ([192.0.2.1])',
      ' by mx.x.invalid with ESMTPS id one',
      ' for <orders@x.invalid>;',
      ' Sat, 28 Nov 2026 10:00:00 +0000',
      '',
    ].join('\r\n'),
  );
});

test('what the sender chose breaks neither field', (t) => {
  const nasty = 'x"; dkim=pass\r\nX: (\u00e9';
  const text = traceFields(
    {
      ...trace,
      helo: nasty,
      peer: '2001:db8::1',
      recipients: ['a@x.invalid', 'b@x.invalid'],
      sender: '',
      isUtf8: true,
    },
    {
      spf: { result: 'fail', domain: nasty },
      dkim: [{ result: 'pass', domain: nasty, selector: 's' }],
      dmarc: { result: 'fail', domain: 'x.invalid', policy: 'reject' },
      arc: { result: 'none' },
    },
  ).toString();
  const quoted = '"x?; dkim=pass??X: (?"';
  t.true(text.includes(` spf=fail smtp.helo=${quoted};\r\n dkim=pass header.d=${quoted} header.s=s;`), text);
  t.true(text.includes(' dmarc=fail (p=reject) header.from=x.invalid;'));
  t.true(
    text.includes(
      'Received: from unknown ([IPv6:2001:db8::1])\r\n by mx.x.invalid with UTF8SMTPS id one;\r\n',
    ),
  );
  t.is(text.split('\r\n').filter((line) => !line.startsWith(' ')).length, 3);
});

test('a field that speaks for us is removed, however it is written; others and the body stay', (t) => {
  const forged = [
    'Authentication-Results: mx.x.invalid; dkim=pass\r\n',
    'authentication-RESULTS : MX.x.invalid 1;\r\n spf=pass\r\n\tdmarc=pass\r\n',
    'Authentication-Results:\r\n (a \\) (nested)) "mx.x.invalid." ; none\r\n',
  ];
  const honest = [
    'Authentication-Results: mx.there.invalid; dkim=pass header.d=mx.x.invalid\r\n',
    'X-Authentication-Results: mx.x.invalid; dkim=pass\r\n',
    'Subject: x\r\n Authentication-Results: mx.x.invalid\r\n',
  ];
  const body = '\r\nAuthentication-Results: mx.x.invalid; dkim=pass\r\n';
  const raw = Buffer.from([forged[0], honest[0], forged[1], honest[1], honest[2], forged[2], body].join(''));
  const header = raw.toString('latin1', 0, headerLength(raw));
  t.is(withoutForged(raw, header, hostname).toString(), [...honest, body].join(''));
});

test('hops are counted, and ours among them', (t) => {
  const ours = 'Received: from a\r\n by MX.x.invalid with ESMTP id 1; now\r\n';
  const other = 'Received: from mx.x.invalid by b.invalid; now\r\n';
  t.deepEqual(countHops(ours + other + other, hostname), { all: 3, ours: 1 });
});

test('the header ends at the first empty line', (t) => {
  const lengths = ['A: b\r\n\r\nc\r\n\r\n', '\r\nA: b\r\n', 'A: b\r\n', ''].map((text) =>
    headerLength(Buffer.from(text)),
  );
  t.deepEqual(lengths, [6, 0, 6, 0]);
});

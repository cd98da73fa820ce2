import test from 'ava';
import { headerFault } from '../../src/compose/custom-headers.ts';

test('headers that would break or falsify the message are refused, and invalid values of those that replace ours', (t) => {
  const faulty: Record<string, string[]> = {
    x: ['From', 'to', 'SUBJECT', 'DKIM-Signature', 'Bcc', 'cc', 'Received', 'Return-Path', 'MIME-Version'],
    y: [
      'Content-Type',
      'content-anything',
      'Resent-To',
      'ARC-Seal',
      'Authentication-Results',
      'Sender',
      'Date',
    ],
    'a@b.invalid': ['X Y', 'X:Y', '', 'X-É', 'X\r\nY', 'X\0', 'X'.repeat(77)],
    'a\r\nBcc: e@x.invalid': ['X-A', 'Reply-To', 'Message-ID'],
    'a\nb': ['X-A'],
    'a\rb': ['X-A'],
    'a\0b': ['X-A'],
    'a\ud800b': ['X-A'],
    'a@b.invalid, c@d.invalid': ['Reply-To', 'Sender', 'Message-ID'],
    '<jörg@b.invalid>': ['Message-ID'],
    [`<${'a'.repeat(1000)}@b.invalid>`]: ['Message-ID'],
    'not a date': ['Date'],
  };
  for (const [value, names] of Object.entries(faulty)) {
    for (const name of names) t.is(typeof headerFault(name, value), 'string', `${name}: ${value}`);
  }
  const fine = [
    'X-A',
    'x_a',
    'List-Unsubscribe',
    'In-Reply-To',
    'Reply-To',
    'Sender',
    'Message-ID',
    'Toto',
    'Auto-Submitted',
  ];
  for (const name of fine) t.is(headerFault(name, 'a@b.invalid'), null, name);
});

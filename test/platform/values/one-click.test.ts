/** Bulk mail without one-click unsubscribe is taken, and said to be that: in the response, the mail log and by the doctor. */
import test from 'ava';
import { fieldValue, readHead } from '#mail/compose/head.ts';
import {
  bulkRecipients,
  type LackingField,
  lackingField,
  lackingHeader,
} from '#platform/values/one-click.ts';

const oneClick = {
  'List-Unsubscribe': '<mailto:off@list.invalid>, <https://list.invalid/off?u=1>',
  'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
};

test('List-Id and Precedence say that mail is bulk; one click needs an https link and the field of RFC 8058', (t) => {
  const [none, other] = ['List-Unsubscribe', 'List-Unsubscribe-Post'] as const;
  const cases: [headers: Record<string, string>, lacks?: LackingField][] = [
    [{}],
    [{ Precedence: 'first-class' }],
    [{ 'List-Id': ' ' }],
    [{ 'X-Precedence': 'bulk' }],
    [{ Precedence: 'bulk' }, none],
    [{ PRECEDENCE: ' Bulk ' }, none],
    [{ precedence: 'list' }, none],
    [{ precedence: 'bulky' }],
    [{ 'list-id': 'News <news.list.invalid>' }, none],
    [{ 'List-Id': '<a.b>', ...oneClick }],
    [{ 'List-Id': '<a.b>', ...oneClick, 'List-Unsubscribe-Post': 'list-unsubscribe=one-click ' }],
    [{ 'List-Id': '<a.b>', 'List-Unsubscribe': oneClick['List-Unsubscribe'] }, other],
    [{ 'List-Id': '<a.b>', 'List-Unsubscribe-Post': oneClick['List-Unsubscribe-Post'] }, none],
    [{ 'List-Id': '<a.b>', ...oneClick, 'List-Unsubscribe': '<mailto:off@list.invalid>' }, other],
    [{ 'List-Id': '<a.b>', ...oneClick, 'List-Unsubscribe': '<http://list.invalid/off>' }, other],
    [{ 'List-Id': '<a.b>', ...oneClick, 'List-Unsubscribe-Post': 'yes' }, other],
    [oneClick],
  ];
  for (const [headers, lacks] of cases) {
    t.is(lackingHeader(headers), lacks, JSON.stringify(headers));
    const raw = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const head = readHead(Buffer.from(`${raw.join('')}\r\nHi\r\n`));
    t.is(
      lackingField((name) => fieldValue(head, name)),
      lacks,
    );
  }
});

test('one body for many people is bulk mail, whatever it says', (t) => {
  t.is(lackingHeader({}, bulkRecipients - 1), undefined);
  t.is(lackingHeader({}, bulkRecipients), 'List-Unsubscribe');
  t.is(lackingHeader(oneClick, bulkRecipients), undefined);
});

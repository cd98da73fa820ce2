/** Bulk mail without one-click unsubscribe is taken, and said to be that: in the response, the mail log and by the doctor. */
import test from 'ava';
import { fieldValue, readHead } from '#mail/compose/head.ts';
import { headersLackOneClick, lacksOneClick } from '#platform/values/one-click.ts';

const oneClick = {
  'List-Unsubscribe': '<mailto:off@list.invalid>, <https://list.invalid/off?u=1>',
  'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
};

test('List-Id and Precedence say that mail is bulk; one click needs an https link and the field of RFC 8058', (t) => {
  const cases: [headers: Record<string, string>, lacks: boolean][] = [
    [{}, false],
    [{ Precedence: 'first-class' }, false],
    [{ 'List-Id': ' ' }, false],
    [{ 'X-Precedence': 'bulk' }, false],
    [{ Precedence: 'bulk' }, true],
    [{ PRECEDENCE: ' Bulk ' }, true],
    [{ precedence: 'list' }, true],
    [{ precedence: 'bulky' }, false],
    [{ 'list-id': 'News <news.list.invalid>' }, true],
    [{ 'List-Id': '<a.b>', ...oneClick }, false],
    [{ 'List-Id': '<a.b>', ...oneClick, 'List-Unsubscribe-Post': 'list-unsubscribe=one-click ' }, false],
    [{ 'List-Id': '<a.b>', 'List-Unsubscribe': oneClick['List-Unsubscribe'] }, true],
    [{ 'List-Id': '<a.b>', ...oneClick, 'List-Unsubscribe': '<mailto:off@list.invalid>' }, true],
    [{ 'List-Id': '<a.b>', ...oneClick, 'List-Unsubscribe': '<http://list.invalid/off>' }, true],
    [{ 'List-Id': '<a.b>', ...oneClick, 'List-Unsubscribe-Post': 'yes' }, true],
    [oneClick, false],
  ];
  for (const [headers, lacks] of cases) {
    t.is(headersLackOneClick(headers), lacks, JSON.stringify(headers));
    const raw = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const head = readHead(Buffer.from(`${raw.join('')}\r\nHi\r\n`));
    t.is(
      lacksOneClick((name) => fieldValue(head, name)),
      lacks,
    );
  }
});

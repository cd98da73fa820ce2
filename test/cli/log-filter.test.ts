/** Which lines are asked for, and how they look. */
import test from 'ava';
import { createIdSearch, createKeep, type Filters } from '#cli/maillog/log-filter.ts';
import { createAttemptMerge } from '#cli/maillog/merge-attempts.ts';
import { readable } from '#cli/render/log-view.ts';
import { picture } from '#lab/table.ts';
import { sanitize, sanitizeJson } from '#platform/base/sanitize.ts';

const emailId = '01a1fde4-3a44-750e-831d-9eda6307a7e9';
const line = {
  time: '2026-11-20T12:00:00.000Z',
  event: 'delivered',
  msg: 'delivered to <Ann@there.example>',
  emailId,
  orgId: 'acme',
  recipient: 'Ann@there.example',
  destination: 'there.example',
  from: 'The Shop <shop@sender.example>',
  deliveryId: '01a1fde4-3a44-750e-831d-000000000001',
  host: 'mx1.there.example',
  address: '192.0.2.7',
  reply: '250 2.0.0 Ok: queued as 4XqN0CF3WA',
  tls: 'TLSv1.3',
  ms: 120,
  attempt: 2,
  category: null,
};
const text = (fields: object = {}) => JSON.stringify({ ...line, ...fields });

for (const [name, yes, no] of [
  ['orgId', 'acme', 'other'],
  ['emailId', emailId, emailId.replace('01', '02')],
  ['to', 'ANN@There.example', 'bob@there.example'],
  ['from', 'Shop@Sender.example', 'sho@sender.example'],
  ['from', 'sender.example', 'ender.example'],
  ['domain', 'there.example', 'ere.example'],
  ['states', ['accepted', 'delivered'], ['bounced']],
  ['since', Date.parse(line.time), Date.parse(line.time) + 1],
] satisfies [keyof Filters, unknown, unknown][]) {
  test(`filters by ${name}: ${yes}`, (t) => {
    t.true(createKeep({ [name]: yes })(text()));
    t.false(createKeep({ [name]: no })(text()));
  });
}

test('filters by destination: by its hosts, and by the domains that it served', (t) => {
  const keep = createKeep({
    destination: { hosts: new Set(['mx1.there.example']), domains: new Set(['d.example']) },
  });
  t.true(keep(text()));
  t.true(keep(text({ host: undefined, destination: 'd.example' })));
  t.false(keep(text({ host: 'mx2.there.example' })));
});

test('expired is a kind of bounced', (t) => {
  const keep = createKeep({ states: ['expired'] });
  t.true(keep(text({ event: 'bounced', category: 'expired' })));
  t.false(keep(text({ event: 'bounced', category: 'unknown_user' })));
});

test('a line that is not one of the mail log is left out', (t) => {
  const broken = ['', '{"time":"2026', 'null', '7', '[]', '{"msg":1,"time":"x","event":"y"}', '\0\0'];
  t.deepEqual(broken.filter(createKeep({})), []);
  for (const fields of [{ recipient: 7 }, { from: {} }, { destination: [] }, { reply: {} }, { emailId: 1 }]) {
    const keep = createKeep({ to: 'a@b.example', from: 'b.example' }, createIdSearch('4711'));
    t.false(keep(text(fields)));
    t.notThrows(() => readable(JSON.parse(text(fields)), 80));
  }
});

test('any id leads to the whole story, once its line was seen', (t) => {
  const accepted = text({
    event: 'accepted',
    reply: undefined,
    deliveryId: undefined,
    requestId: 'req-1',
    messageId: 'm1@mail.example',
  });
  const other = text({ emailId: emailId.replace('01', '02'), deliveryId: 'x', reply: '250 as 4XqN0CF3WAB' });
  const ids = ['req-1', '<m1@mail.example>', 'm1@mail.example', '4XqN0CF3WA', '9eda6307a7e9'];
  for (const id of [...ids, emailId.toUpperCase(), line.deliveryId]) {
    const keep = createKeep({}, createIdSearch(id));
    for (const each of [accepted, text(), other]) keep(each);
    t.deepEqual([accepted, text(), other].map(keep), [true, true, id === '9eda6307a7e9'], id);
  }
  t.false(createKeep({}, createIdSearch('.*'))(text()), 'an id is no pattern');
});

const plain = (shown: string) => shown.replace(/\u001b\[\d+m/g, '').replace(/\u00a0/g, ' ');
const clock = (shown: string) => shown.replace(/^\d\d:\d\d/, 'HH:MM');

test('a terminal gets columns, and what does not fit below, under the text', (t) => {
  t.deepEqual(clock(plain(readable(line, 80))).split('\n'), picture('log-line-80'));
  t.deepEqual(clock(plain(readable(line, 200))).split('\n'), [
    `HH:MM:00.000  delivered  ${emailId} Ann@there.example mx1.there.example [192.0.2.7]: 250 2.0.0 Ok: queued as 4XqN0CF3WA (120 ms, TLSv1.3, attempt 2)`,
  ]);
});

test('the line of an accepted mail keeps what the log notes about it', (t) => {
  const notes = '; scheduled for 2026-12-24T17:00:00.000Z; ignored: reply_to; repaired: from, long lines';
  const msg = `accepted for <${line.recipient}> (bcc) from "Doe, John" <app@sender.example>${notes}`;
  const shown = plain(readable({ ...line, event: 'accepted', msg, requestId: 'req-1' }, 400));
  t.true(shown.includes(`(bcc) from "Doe, John" <app@sender.example>${notes} request req-1`), shown);
});

test("control and direction characters in others' texts are shown as escapes", (t) => {
  const evil = '\u001b[2J\u009b1m\u202egnp.exe\r\n\u2028\u0007';
  const fields = ['emailId', 'recipient', 'from', 'host', 'address', 'reply', 'tls', 'requestId', 'category'];
  for (const event of ['accepted', 'bounced', evil]) {
    const shown = plain(
      readable({ ...line, event, msg: evil, ...Object.fromEntries(fields.map((name) => [name, evil])) }, 80),
    );
    t.notRegex(shown.replaceAll('\n', ''), /[\p{Cc}\p{Bidi_Control}\u2028]/u);
  }
  t.is(sanitize(evil), '\\x1b[2J\\x9b1m\\u202egnp.exe\\x0d\\x0a\\u2028\\x07');
  const json = sanitizeJson(JSON.stringify(evil));
  t.regex(json, /^[\x20-\x7e]+$/);
  t.is(JSON.parse(json), evil);
});

test('an attempt is shown with its outcome, and by itself only if it says something else', (t) => {
  const at = (event: string, fields: object = {}) =>
    ({ ...line, event, msg: `${event} it`, ...fields }) as typeof line;
  const merge = createAttemptMerge();
  const shown: string[] = [];
  const show = (lines: { event: string; host?: unknown }[]) =>
    shown.push(...lines.map(({ event, host }) => `${event} ${host}`));
  const down = { host: 'mx0.there.example', reply: 'connect timed out' };
  for (const each of [at('attempted', down), at('attempted'), at('delivered')]) show(merge.add(each));
  t.deepEqual(shown.splice(0), ['attempted mx0.there.example', 'delivered mx1.there.example']);
  show(merge.add(at('attempted')));
  show(merge.add(at('accepted', { deliveryId: 'another' })));
  show(merge.add(at('deferred', { deliveryId: undefined })));
  show(merge.flush(Date.parse(line.time) + 1000));
  t.deepEqual(shown.splice(0), ['accepted mx1.there.example', 'deferred mx1.there.example']);
  show(merge.flush(Date.parse(line.time) + 3000));
  t.deepEqual(shown.splice(0), ['attempted mx1.there.example'], 'no outcome came: the process has died');
  for (let n = 0; n < 10_001; n++) show(merge.add(at('attempted', { deliveryId: `d${n}` })));
  t.is(shown.splice(0).length, 1, 'so many wait at once');
  show(merge.flush());
  t.is(shown.length, 10_000);
});

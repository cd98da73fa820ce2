/**
 * What is the same mail once more, and what is another one; and how large a mail may be (symfony/symfony#42735,
 * laravel/framework#38887, mailcow/mailcow-dockerized#2921): a program that reuses a Message-ID loses nothing, and one that
 * lost the reply sends nothing twice.
 */
import test from 'ava';
import { oneKind } from '#lab/database/databases.ts';
import {
  emailIdOf,
  loggedIn,
  messageTo,
  submissionWorlds,
  submit,
  tenantOf,
} from '#lab/scenes/submission.ts';

const worlds = submissionWorlds([oneKind]);

const mail = {
  received: 'Received: from cms.invalid by relay.invalid; Fri, 2 Jan 2026 03:04:05 +0000',
  date: 'Date: Fri, 2 Jan 2026 03:04:05 +0000',
  from: 'From: App <app@sender.invalid>',
  to: 'To: ann@there.invalid',
  subject: 'Subject: Report',
  id: 'Message-ID: <report@cms.invalid>',
  blank: '',
  body: 'All is well.',
};

const to = ['ann@there.invalid'];

async function idsOf(mails: Partial<typeof mail>[]): Promise<string[]> {
  const talk = await loggedIn(await tenantOf(worlds[oneKind]));
  const ids: string[] = [];
  for (const one of mails) {
    const lines = Object.values({ ...mail, ...one }).filter((line, at) => line !== '' || at === 6);
    ids.push(emailIdOf(await submit(talk, to, lines)));
  }
  return ids;
}

test('the same message once more is a repeat, whatever its Date and Received say', async (t) => {
  const ids = await idsOf([
    {},
    {},
    { date: 'Date: Sat, 3 Jan 2026 03:04:05 +0000' },
    { date: '' },
    { received: 'Received: from other.invalid by relay.invalid; Sat, 3 Jan 2026 03:04:05 +0000' },
    { received: '' },
  ]);
  t.is(new Set(ids).size, 1, String(ids));
});

test('a reused Message-ID with anything else is a mail of its own', async (t) => {
  const ids = await idsOf([
    {},
    { body: 'All is not well.' },
    { subject: 'Subject: Other report' },
    { to: 'To: team@there.invalid' },
    { from: 'From: Other <app@sender.invalid>' },
    { subject: 'Subject: Report\r\nX-Priority: 1' },
    { subject: 'Subject: Report\r\nX-Postern-Tag-run: 2' },
  ]);
  t.is(new Set(ids).size, 7, String(ids));
});

test('without a Message-ID nothing says that a mail is a repeat', async (t) => {
  const ids = await idsOf([{ id: '' }, { id: '' }, { id: '', body: 'Other' }]);
  t.is(new Set(ids).size, 3);
});

/** A message of this many bytes, nearly all of it in an attachment. */
function largeOf(size: number, encoding: 'base64' | '7bit'): Buffer {
  const head = [
    ...['From: app@sender.invalid', 'Subject: Large', 'MIME-Version: 1.0'],
    ...[
      'Content-Type: multipart/mixed; boundary=b',
      '',
      '--b',
      '',
      'Hi',
      '--b',
      'Content-Type: application/pdf',
    ],
    ...[`Content-Transfer-Encoding: ${encoding}`, 'Content-Disposition: attachment; filename=a.pdf', '', ''],
  ].join('\r\n');
  const end = '\r\n--b--\r\n';
  const line = `${'QUJD'.repeat(19)}\r\n`;
  const left = size - head.length - end.length;
  return Buffer.from(head + line.repeat(Math.ceil(left / line.length)).slice(0, left) + end);
}

test('SIZE says what is taken: up to it a mail arrives, beyond it is 552 at MAIL and after the message', async (t) => {
  const world = worlds[oneKind];
  const talk = await loggedIn(await tenantOf(world));
  const size = Number(/SIZE (\d+)/.exec(await talk.says('EHLO x\r\n', '250'))![1]);
  const send = async (bytes: Buffer, expected: string, address: string) => {
    await talk.begins('<>', `<${address}>`);
    await talk.drained(bytes);
    return talk.says('.\r\n', expected);
  };
  await send(largeOf(size, '7bit'), '250', 'seven@there.invalid');
  await send(largeOf(size, 'base64'), '250', 'base64@there.invalid');
  t.true((await messageTo(world, 'base64@there.invalid')).raw.length > size);
  await send(largeOf(size + 1, 'base64'), '552 5.3.4', 'more@there.invalid');
  await talk.says(`MAIL FROM:<> SIZE=${size}\r\n`, '250');
  await talk.says('RSET\r\n', '250');
  t.regex(await talk.says(`MAIL FROM:<> SIZE=${size + 1}\r\n`, '552'), /^552 5\.3\.4 /);
});

/** Bulk mail without one-click unsubscribe is taken in every way in, and warned of: in the answer, the mail log, by the doctor. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import Mailgun from 'mailgun.js';
import { makeKey } from '#accounts/create-key.ts';
import { makeStream } from '#accounts/manage-streams.ts';
import { emailIdOf, loggedIn, startSubmission, submit } from '#lab/scenes/submission.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { checkBulkMail } from '#operate/doctor/checks/bulk-mail.ts';

const warningHeader = 'x-postern-warning';
const bulk = { 'List-Id': 'News <news.list.invalid>' };
const good = {
  ...bulk,
  'List-Unsubscribe': '<https://list.invalid/off?u=1>',
  'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
};

test('bulk mail without one-click unsubscribe is warned of, whichever way it comes in', async (t) => {
  const world = await startSubmission(t);
  const log = () => readFile(join(world.config.dataDir, 'log', 'mail.log'), 'utf8');
  const isWarned = async (emailId: string) => {
    const line = await until(async () =>
      (await log()).split('\n').find((one) => one.includes(emailId) && one.includes('accepted')),
    );
    return line.includes('without one-click unsubscribe');
  };
  const doctor = () => checkBulkMail(async () => world.db);
  const message = { to: 'ann@there.invalid' };

  const fine = await world.send({ ...message, headers: good });
  t.is(fine.headers.get(warningHeader), null);
  t.false(await isWarned(fine.body.emailId));
  t.like(await doctor(), { verdict: 'ok' });

  const plain = await world.send({ ...message, subject: 'Second', headers: { precedence: 'bulk' } });
  t.regex(plain.headers.get(warningHeader)!, /List-Unsubscribe-Post/);
  t.true(await isWarned(plain.body.emailId));
  const emails = [fine, plain].map((_, index) => ({
    from: 'app@sender.invalid',
    subject: `Batch ${index}`,
    text: 'Hi',
    ...message,
    ...(index === 1 && { headers: bulk }),
  }));
  const batch = await world.call('POST', '/api/public/email/batch', { body: JSON.stringify(emails) });
  t.is(batch.status, 200);
  t.regex(batch.headers.get(warningHeader)!, /RFC 8058/);
  t.false(await isWarned(batch.body.results[0].body.emailId));
  t.true(await isWarned(batch.body.results[1].body.emailId));

  const resend = await fetch(`${world.url()}/emails`, {
    method: 'POST',
    headers: { authorization: `Bearer ${world.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      from: 'app@sender.invalid',
      subject: 'Hi',
      text: 'Hi',
      ...message,
      headers: bulk,
    }),
  });
  t.truthy(resend.headers.get(warningHeader));
  const mailgun = new Mailgun(FormData).client({ username: 'api', key: world.key, url: world.url() });
  const queued = await mailgun.messages.create('sender.invalid', {
    from: 'app@sender.invalid',
    to: ['ann@there.invalid', 'bob@there.invalid'],
    subject: 'Hi %recipient.name%',
    text: 'Hi',
    'h:List-Id': '<%recipient.list%.list.invalid>',
    'recipient-variables': JSON.stringify({
      'ann@there.invalid': { name: 'Ann', list: 'a' },
      'bob@there.invalid': { name: 'Bob', list: 'b' },
    }),
  });
  t.is(queued.status, 200);
  await until(async () => (await log()).split('without one-click unsubscribe').length - 1 === 5);

  const talk = await loggedIn({ world, key: world.key, orgId: world.orgId });
  const head = ['From: app@sender.invalid', 'To: ann@there.invalid', 'Subject: Hi'];
  const submitted = await submit(talk, ['ann@there.invalid'], [...head, 'Precedence: list', '', 'Hi']);
  t.true(await isWarned(emailIdOf(submitted)));
  const clean = await submit(talk, ['ann@there.invalid'], [...head, 'Subject2: x', '', 'Hi']);
  t.false(await isWarned(emailIdOf(clean)));

  const finding = await doctor();
  t.is(finding.verdict, 'warning');
  t.regex(finding.found, /^6 of the newest 9 mails are bulk mail without it, from sender\.invalid$/);
});

test('mail of a stream that adds one click is not warned of, unless it has a List-Unsubscribe of its own', async (t) => {
  const world = await startWorld(t);
  const stream = { orgId: world.orgId, title: 'News', kind: 'subscribed' } as const;
  await makeStream(world.db, { ...stream, name: 'news' }, 0);
  await makeStream(world.db, { ...stream, name: 'alerts', kind: 'transactional' }, 0);
  const warned = async (fields: object, path = '/api/public/email/send') => {
    const mail = {
      from: 'app@sender.invalid',
      to: 'ann@there.invalid',
      text: 'Hi',
      headers: bulk,
      ...fields,
    };
    const body = JSON.stringify({ ...mail, subject: String(Math.random()) });
    return (await world.call('POST', path, { body })).headers.get(warningHeader) !== null;
  };
  t.false(await warned({ stream: 'news' }));
  const line = await until(async () =>
    (await readFile(join(world.config.dataDir, 'log', 'mail.log'), 'utf8'))
      .split('\n')
      .find((one) => one.includes('"delivered"')),
  );
  t.is(JSON.parse(line).stream, 'news', 'the mail log names the stream');
  t.false(await warned({ stream: 'news' }, '/api/public/email/send?dryRun=true'));
  t.true(await warned({ stream: 'alerts' }));
  t.true(await warned({ stream: 'transactional' }));
  t.true(
    await warned({ stream: 'news', headers: { ...bulk, 'List-Unsubscribe': '<mailto:off@list.invalid>' } }),
  );
  const { key } = await makeKey(
    world.db,
    { orgId: world.orgId, label: 'news', scopes: ['email:send'], stream: 'news' },
    0,
  );
  const response = await fetch(`${world.url()}/api/public/email/send`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      from: 'app@sender.invalid',
      to: 'bob@there.invalid',
      subject: 's',
      text: 't',
      headers: bulk,
    }),
  });
  t.is(response.status, 200);
  t.is(response.headers.get(warningHeader), null);
});

test('one body for fifty people is warned of: at the send if it is one call, by the doctor if it is many emails', async (t) => {
  const world = await startWorld(t);
  const addresses = (count: number) => Array.from({ length: count }, (_, index) => `p${index}@there.invalid`);
  const ask = (path: string, body: object) =>
    fetch(world.url() + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${world.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const sendgrid = (count: number) =>
    ask('/v3/mail/send', {
      personalizations: addresses(count).map((email) => ({ to: [{ email }] })),
      from: { email: 'app@sender.invalid' },
      subject: 'Sale',
      content: [{ type: 'text/plain', value: `Sale of ${count}` }],
    });
  t.is((await sendgrid(49)).headers.get(warningHeader), null);
  const many = await sendgrid(50);
  t.is(many.status, 202);
  t.regex(many.headers.get(warningHeader)!, /stream of the kind subscribed/);
  const finding = await checkBulkMail(async () => world.db);
  t.like(finding, { verdict: 'warning' });
  t.regex(finding.found, /^50 of the newest 99 mails/);
  await world.db('messages').update({ size: 0 });
  for (let n = 0; n < 60; n += 1) {
    const { status } = await world.send({ to: 'ann@there.invalid', subject: `Alarm ${n}`, text: 'The same' });
    t.is(status, 200);
  }
  t.like(await checkBulkMail(async () => world.db), { verdict: 'ok' }, 'one person gets it often');
});

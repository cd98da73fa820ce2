/**
 * Contents beside text and HTML: invitations by SendGrid's API (sendgrid/sendgrid-ruby#298, sendgrid/sendgrid-nodejs#217), and AMP
 * for Email (sendgrid/sendgrid-nodejs#976, mailgun/mailgun-go#210, mailgun/mailgun-ruby#304), as readers want them.
 */
import test, { type ExecutionContext } from 'ava';
import { contextOfFile } from '#lab/context-of-file.ts';
import { areSigned } from '#lab/dkim.ts';
import { messageTo, type SubmissionWorld, startSubmission } from '#lab/scenes/submission.ts';
import { sendBy } from '#lab/scenes/ways-in.ts';

let world: SubmissionWorld;
const context = contextOfFile();
test.before(async () => {
  world = await startSubmission(context);
});

const from = 'app@sender.invalid';
const calendar = ['BEGIN:VCALENDAR', 'METHOD:REQUEST', 'END:VCALENDAR', ''].join('\n');
const amp = '<!doctype html><html ⚡4email>{{name}}%recipient.name%</html>';

/** The types of the parts, from the outside in. */
async function typesOf(to: string): Promise<string[]> {
  const { raw } = await messageTo(world, to);
  const types = raw.toString('latin1').matchAll(/^Content-Type: ((?:[^\r]|\r\n[ \t])*)/gm);
  return [...types].map(([, type]) => type!.replace(/;\s+(?:boundary|charset|name)[^;]*/g, ''));
}

async function sentBySendgrid(t: ExecutionContext, to: string, content: object[], more = {}) {
  const personalizations = [{ to: [{ email: to }], substitutions: { '{{name}}': 'Ann' } }];
  const fields = { personalizations, from: { email: from }, subject: 'Hi', content, ...more };
  const { status, text } = await sendBy.sendgrid(world, fields);
  t.is(status, 202, text);
}

const text = { type: 'text/plain', value: 'Hi' };
const html = { type: 'text/html; charset=utf-8', value: '<p>Hi</p>' };

test('SendGrid: an invitation among the contents is an alternative, and no file', async (t) => {
  const invitation = { type: 'text/calendar; method=REQUEST', value: calendar };
  await sentBySendgrid(t, 'invited@there.invalid', [text, html, invitation]);
  t.deepEqual(await typesOf('invited@there.invalid'), [
    ...['multipart/alternative', 'text/plain', 'text/html', 'text/calendar; method=REQUEST'],
  ]);
  const file = {
    content: Buffer.from(calendar).toString('base64'),
    filename: 'invite.ics',
    type: 'application/ics',
  };
  await sentBySendgrid(t, 'both@there.invalid', [html, invitation], { attachments: [file] });
  t.deepEqual((await typesOf('both@there.invalid')).slice(-3), [
    ...['text/html', 'text/calendar; method=REQUEST', 'application/ics'],
  ]);
  await sentBySendgrid(t, 'alone@there.invalid', [{ type: 'text/calendar', value: calendar }]);
  t.deepEqual((await typesOf('alone@there.invalid')).slice(1), [
    'text/plain',
    'text/calendar; method=REQUEST',
  ]);
  // RFC 6047 section 2.4; Outlook refuses what differs (maevsi/vibetype#2368).
  const other = { type: 'text/calendar; method=PUBLISH', value: calendar };
  await sentBySendgrid(t, 'other@there.invalid', [text, other]);
  t.is((await typesOf('other@there.invalid')).at(-1), 'text/calendar; method=REQUEST');
});

test('SendGrid: AMP stands between text and HTML, with its substitutions', async (t) => {
  const parts = [html, { type: 'text/x-amp-html', value: amp }, text];
  await sentBySendgrid(t, 'amp@there.invalid', parts);
  t.deepEqual((await typesOf('amp@there.invalid')).slice(1), ['text/plain', 'text/x-amp-html', 'text/html']);
  t.regex((await messageTo(world, 'amp@there.invalid')).raw.toString(), /4email>Ann%/);
});

test('Mailgun: so does amp-html, with the variables of each recipient', async (t) => {
  const to = ['ann@there.invalid', 'bob@there.invalid'];
  const variables = { [to[0]!]: { name: 'Ann' }, [to[1]!]: { name: 'Bob' } };
  const fields = { from, to: to.join(','), subject: 'Hi', text: 'Hi', html: '<p>Hi</p>', 'amp-html': amp };
  const form = { ...fields, 'recipient-variables': JSON.stringify(variables) };
  const { status, text } = await sendBy.mailgun(world, form);
  t.is(status, 200, text);
  for (const [at, one] of to.entries()) {
    t.deepEqual((await typesOf(one)).slice(1), ['text/plain', 'text/x-amp-html', 'text/html']);
    t.true((await messageTo(world, one)).raw.includes(['{{name}}Ann</html>', '{{name}}Bob</html>'][at]!));
  }
  await areSigned(t, world);
});

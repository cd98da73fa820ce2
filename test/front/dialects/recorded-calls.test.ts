/**
 * Calls of SDKs in other languages, byte for byte as they write them (read in their sources: the versions are in the User-Agents),
 * sent over a socket. What each SDK needs of the answer is checked as it checks it.
 */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import test from 'ava';
import PostalMime from 'postal-mime';
import { addSuppression, suppressionOf } from '#accounts/rows/suppressions.ts';
import { type RecordedCall, recordedCalls } from '#lab/recorded-calls.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

// biome-ignore lint/suspicious/noExplicitAny: the service's own
type Check = (body: any, headers: string) => unknown;

const accepted: Check = (body, headers) => body === '' && /^x-message-id: [0-9a-f-]{36}\r?$/im.test(headers);
const isEmpty: Check = (body) => body === '';

/** What each SDK needs of the answer. */
const checks: Record<string, Check> = {
  'PHP sendEmail, with a file': (body) =>
    body.ErrorCode === 0 && typeof body.MessageID === 'string' && body.To === 'ann@there.invalid',
  'PHP getBounces': (body) => body.TotalCount === 0 && Array.isArray(body.Bounces),
  'PHP createWebhookConfiguration': ({ ID, Triggers }) =>
    Number.isInteger(ID) && Triggers.Open.Enabled && !Triggers.Click.Enabled,
  'PHP sendEmailWithTemplate': ({ ErrorCode, Message }) => ErrorCode === 300 && /no templates/.test(Message),
  'Ruby deliver, as Rails sends': (body) =>
    body.ErrorCode === 0 && !Number.isNaN(Date.parse(body.SubmittedAt)),
  'Ruby, an inactive recipient': ({ ErrorCode, Message }) =>
    ErrorCode === 406 &&
    /Found inactive addresses: (.+?)\. Inactive/.exec(Message)![1] === 'dora@there.invalid',
  'Ruby activate_bounce, with an empty body': ({ ErrorCode, Message }) =>
    ErrorCode === 701 && /no such bounce/.test(Message),
  'Ruby delivery_stats': ({ InactiveMails, Bounces }) => InactiveMails === 1 && Bounces[0].Count === 0,
  'Python send': ({ To, SubmittedAt, MessageID, ErrorCode, Message }) =>
    To === 'ann@there.invalid' && SubmittedAt && MessageID && ErrorCode === 0 && Message === 'OK',
  'Python list, whose model refuses an answer without these members': ({ TotalCount, Messages: [one] }) =>
    TotalCount >= 1 &&
    [one.MessageID, one.MessageStream, one.From, one.Subject, one.Status].every(
      (value) => typeof value === 'string',
    ) &&
    typeof one.TrackOpens === 'boolean' &&
    ['None', 'HtmlOnly'].includes(one.TrackLinks) &&
    one.Sandboxed === false &&
    Array.isArray(one.Recipients),
  'Go SendEmailBatch, in chunks': ([sent, refused]) =>
    sent.ErrorCode === 0 && refused.ErrorCode === 406 && typeof refused.Message === 'string',
  'Go with a token that is wrong': ({ ErrorCode, Message }) =>
    ErrorCode === 10 && typeof Message === 'string',
  'PHP send, with the quotes of its older versions': accepted,
  'PHP, a list of suppressed addresses': ([one]) =>
    one.email === 'dora@there.invalid' && Number.isInteger(one.created),
  'Python send, by SendGrid’s SDK': accepted,
  'Python, a sender whose domain is not ours': ({ errors: [error] }) =>
    typeof error.message === 'string' && error.field === 'from',
  'Ruby send, to an address that complained': accepted,
  'Ruby, the end of a global suppression that there is not': isEmpty,
  'Go send, in the sandbox': isEmpty,
  'Go, a key that is wrong': ({ errors }) => errors.length === 1,
};

/** Over a socket. A title is the status of the answer and the name of the call. */
async function replay(world: World, { title, method, path, headers, body }: RecordedCall) {
  const { hostname, port } = new URL(world.url());
  const fields = headers.map(([name, value]) => `${name}: ${value.replace('$KEY', world.key)}`);
  const isChunked = title.endsWith('(chunked)');
  if (isChunked) fields.push('Transfer-Encoding: chunked');
  else if (body || /^(POST|PUT)/.test(method)) fields.push(`Content-Length: ${Buffer.byteLength(body)}`);
  const chunk = `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  const socket = connect(Number(port), hostname);
  const head = [
    `${method} ${path} HTTP/1.1`,
    `Host: ${hostname}:${port}`,
    ...fields,
    'Connection: close',
    '',
    '',
  ];
  socket.write(head.join('\r\n') + (isChunked ? chunk : body));
  const [answer, ...parts] = (await text(socket)).split('\r\n\r\n');
  const shown = parts.join('\r\n\r\n');
  const json = /transfer-encoding: chunked/i.test(answer!)
    ? shown.replace(/^[0-9a-f]+\r\n|\r\n0\r\n.*$/gs, '')
    : shown;
  return { status: Number(answer!.split(' ')[1]), headers: answer!, body: json && JSON.parse(json) };
}

test('recorded calls of Postmark’s and SendGrid’s SDKs in PHP, Ruby, Python and Go get what these SDKs read', async (t) => {
  const world = await startWorld(t, { settings: { POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true' } });
  await addSuppression(world.db, suppressionOf(world.orgId, 'dora@there.invalid', 'complaint'), 5000);
  const calls = recordedCalls('postmark-and-sendgrid');
  t.is(calls.length, Object.keys(checks).length);
  for (const call of calls) {
    const [, wanted, name] = /^(\d+) (.*?)(?: \(chunked\))?$/.exec(call.title)!;
    const { status, headers, body } = await replay(world, call);
    const shown = `${name}: ${status} ${JSON.stringify(body)}`;
    t.is(status, Number(wanted), shown);
    t.truthy(checks[name!]!(body, headers), shown);
  }
  const subjects = ['PHP: Grüße', 'Ruby', 'Ruby', 'Python', 'Go', 'PHP for Ann', 'Python', 'Python'];
  await until(() => world.mx[0]!.messages.length >= subjects.length);
  const mails = await Promise.all(world.mx[0]!.messages.map(({ raw }) => PostalMime.parse(raw)));
  t.deepEqual(mails.map(({ subject }) => subject!.replace('From ', '')).sort(), subjects.sort());
  const [terms] = mails.find(({ subject }) => /Grüße/.test(subject!))!.attachments;
  t.like(terms, { filename: 'my terms.pdf', disposition: 'attachment' });
  t.is(terms!.contentId, undefined);
  const rails = mails.find(({ subject }) => subject === 'From Ruby')!;
  t.like(rails.attachments[0], { contentId: '<logo@there.mail>', disposition: 'inline' });
  const quoted = mails.find(({ subject }) => subject === 'From PHP for Ann')!;
  t.deepEqual(quoted.to, [{ name: 'Bee, Ann', address: 'ann@there.invalid' }]);
});

/**
 * Calls of SDKs in other languages, byte for byte as they write them (read in their sources: the versions are in the User-Agents),
 * sent over a socket. What each SDK needs of the answer is checked as it checks it.
 */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import test from 'ava';
import PostalMime from 'postal-mime';
import { addSuppression, suppressionOf } from '../../src/db/accounts/suppressions.ts';
import { startWorld, type World } from '../lab/scenes/world.ts';
import { until } from '../lab/until.ts';

interface Recorded {
  name: string;
  /** The request line without the version, the headers of the SDK, an empty line, and the body. */
  call: string;
  isChunked?: boolean;
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the service's own
  check?(body: any, headers: string): boolean;
}

async function replay(world: World, { call, isChunked }: Recorded) {
  const [head, ...rest] = call.split('\n\n');
  const body = rest.join('\n\n').trim();
  const [line, ...headers] = head!.split('\n').map((part) => part.trim());
  const { hostname, port } = new URL(world.url());
  if (isChunked) headers.push('Transfer-Encoding: chunked');
  else if (body || /^(POST|PUT)/.test(line!)) headers.push(`Content-Length: ${Buffer.byteLength(body)}`);
  const chunk = `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  const socket = connect(Number(port), hostname);
  socket.write(
    [`${line} HTTP/1.1`, `Host: ${hostname}:${port}`, ...headers, 'Connection: close', '', ''].join('\r\n') +
      (isChunked ? chunk : body),
  );
  const [answer, ...parts] = (await text(socket)).split('\r\n\r\n');
  const shown = parts.join('\r\n\r\n');
  const json = /transfer-encoding: chunked/i.test(answer!)
    ? shown.replace(/^[0-9a-f]+\r\n|\r\n0\r\n.*$/gs, '')
    : shown;
  return { status: Number(answer!.split(' ')[1]), headers: answer!, body: json && JSON.parse(json) };
}

const inactive = (token: string) =>
  `{"From":"app@sender.invalid","To":"dora@there.invalid","Subject":"${token}","TextBody":"Hi"}`;

function postmarkCalls(key: string): Recorded[] {
  const php = `User-Agent: Postmark-PHP (PHP Version:8.2.36, OS:Linux)
Accept: application/json
Content-Type: application/json
X-Postmark-Server-Token: ${key}`;
  const ruby = `User-Agent: Postmark Ruby Gem v1.25.1
Content-Type: application/json
Accept: application/json
Accept-Encoding: gzip;q=1.0,deflate;q=0.6,identity;q=0.3
X-Postmark-Server-Token: ${key}`;
  const python = `Accept: application/json
Accept-Encoding: gzip, deflate
User-Agent: Python/3.12.3
X-Postmark-Server-Token: ${key}
Content-Type: application/json
X-Postmark-Client: postmark-python
X-Postmark-Client-Version: 0.2.4
X-Postmark-Correlation-Id: 8f1c1f0e-58d9-4c8c-8f6b-0d8f0a1b2c3d`;
  const go = `User-Agent: Go-http-client/1.1
Accept: application/json
Content-Type: application/json
X-Postmark-Server-Token: ${key}`;
  return [
    {
      name: 'PHP sendEmail, with a file',
      call: `POST /email\n${php}\n
{"From":"app@sender.invalid","To":"ann@there.invalid","Subject":"From PHP: Gr\\u00fc\\u00dfe","HtmlBody":"<b>Hi<\\/b>","Headers":[{"Name":"X-Order","Value":"7"}],"TrackOpens":true,"Attachments":[{"Name":"my terms.pdf","Content":"cGRm","ContentType":"application\\/pdf","ContentId":"my terms.pdf"}],"Metadata":[],"TrackLinks":"None"}`,
      status: 200,
      check: (body) =>
        body.ErrorCode === 0 && typeof body.MessageID === 'string' && body.To === 'ann@there.invalid',
    },
    {
      name: 'PHP getBounces',
      call: `GET /bounces?inactive=1&count=10&offset=0\n${php}\n\n`,
      status: 200,
      check: (body) => body.TotalCount === 0 && Array.isArray(body.Bounces),
    },
    {
      name: 'PHP createWebhookConfiguration',
      call: `POST /webhooks\n${php}\n
{"Url":"http:\\/\\/127.0.0.1:9\\/hook","HttpAuth":{"Username":"ann","Password":"secret"},"Triggers":{"Open":{"Enabled":true,"PostFirstOpenOnly":false},"Bounce":{"Enabled":true,"IncludeContent":true}}}`,
      status: 200,
      check: ({ ID, Triggers }) => Number.isInteger(ID) && Triggers.Open.Enabled && !Triggers.Click.Enabled,
    },
    {
      name: 'PHP sendEmailWithTemplate',
      call: `POST /email/withTemplate\n${php}\n
{"From":"app@sender.invalid","To":"ann@there.invalid","TemplateModel":{"name":"Ann"},"InlineCss":true,"TemplateAlias":"welcome"}`,
      status: 422,
      check: ({ ErrorCode, Message }) => ErrorCode === 300 && /no templates/.test(Message),
    },
    {
      name: 'Ruby deliver, as Rails sends',
      call: `POST /email\n${ruby}\n
{"From":"\\"Acme, Inc.\\" <app@sender.invalid>","To":"Ann <ann@there.invalid>, bob@there.invalid","Subject":"From Ruby","Headers":[{"Name":"Message-ID","Value":"<6561f.5@mail.sender.invalid>"},{"Name":"Mime-Version","Value":"1.0"},{"Name":"Content-Transfer-Encoding","Value":"7bit"}],"Metadata":{"plan":"pro"},"MessageStream":"outbound","Attachments":[{"Name":"logo.png","Content":"cG5n\\n","ContentType":"image/png; filename=logo.png","ContentID":"cid:logo@there.mail"}],"HtmlBody":"<img src=\\"cid:logo@there.mail\\">"}`,
      status: 200,
      check: (body) => body.ErrorCode === 0 && !Number.isNaN(Date.parse(body.SubmittedAt)),
    },
    {
      name: 'Ruby, an inactive recipient',
      call: `POST /email\n${ruby}\n\n${inactive('Ruby')}`,
      status: 422,
      check: ({ ErrorCode, Message }) =>
        ErrorCode === 406 &&
        /Found inactive addresses: (.+?)\. Inactive/.exec(Message)![1] === 'dora@there.invalid',
    },
    {
      name: 'Ruby activate_bounce, with an empty body',
      call: `PUT /bounces/7/activate\n${ruby}\n\n`,
      status: 404,
      check: ({ ErrorCode, Message }) => ErrorCode === 701 && /no such bounce/.test(Message),
    },
    {
      name: 'Ruby delivery_stats',
      call: `GET /deliverystats\n${ruby}\n\n`,
      status: 200,
      check: ({ InactiveMails, Bounces }) => InactiveMails === 1 && Bounces[0].Count === 0,
    },
    {
      name: 'Python send',
      call: `POST /email\n${python}\n
{"From":"app@sender.invalid","To":"ann@there.invalid","Subject":"From Python","TextBody":"Hi","Headers":[],"Attachments":[],"Metadata":{}}`,
      status: 200,
      check: ({ To, SubmittedAt, MessageID, ErrorCode, Message }) =>
        To === 'ann@there.invalid' && SubmittedAt && MessageID && ErrorCode === 0 && Message === 'OK',
    },
    {
      name: 'Python list, whose model refuses an answer without these members',
      call: `GET /messages/outbound?count=1&offset=0\n${python}\n\n`,
      status: 200,
      check: ({ TotalCount, Messages: [one] }) =>
        TotalCount >= 1 &&
        [one.MessageID, one.MessageStream, one.From, one.Subject, one.Status].every(
          (value) => typeof value === 'string',
        ) &&
        typeof one.TrackOpens === 'boolean' &&
        ['None', 'HtmlOnly'].includes(one.TrackLinks) &&
        one.Sandboxed === false &&
        Array.isArray(one.Recipients),
    },
    {
      name: 'Go SendEmailBatch, in chunks',
      call: `POST //email/batch\n${go}\n
[{"From":"app@sender.invalid","To":"ann@there.invalid","Subject":"From Go","TextBody":"Hi","TrackOpens":true,"Attachments":[{"Name":"a.txt","Content":"YQ==","ContentType":"text/plain"}]},${inactive('Go')}]`,
      isChunked: true,
      status: 200,
      check: ([sent, refused]) =>
        sent.ErrorCode === 0 && refused.ErrorCode === 406 && typeof refused.Message === 'string',
    },
    {
      name: 'Go with a token that is wrong',
      call: `GET /bounces?count=1&offset=0\n${go.replace(key, 'em_wrong')}\n\n`,
      status: 401,
      check: ({ ErrorCode, Message }) => ErrorCode === 10 && typeof Message === 'string',
    },
  ];
}

function sendgridCalls(key: string): Recorded[] {
  const sdk = (agent: string) =>
    `Authorization: Bearer ${key}\nUser-Agent: ${agent}\nAccept: application/json`;
  const json = 'Content-Type: application/json';
  const python = `Accept-Encoding: identity\n${sdk('sendgrid/6.12.5;python')}`;
  const ruby = `Accept-Encoding: gzip;q=1.0,deflate;q=0.6,identity;q=0.3\n${sdk('sendgrid/6.7.0;ruby')}`;
  const accepted = (body: unknown, headers: string) =>
    body === '' && /^x-message-id: [0-9a-f-]{36}\r?$/im.test(headers);
  return [
    {
      name: 'PHP send, with the quotes of its older versions',
      call: `POST /v3/mail/send\n${sdk('sendgrid/7.11.5;php')}\n${json}\n
{"personalizations":[{"to":[{"name":"\\"Bee, Ann\\"","email":"ann@there.invalid"}],"substitutions":{"-name-":"Ann"},"custom_args":{"order":"7"}}],"from":{"name":"Acme","email":"app@sender.invalid"},"subject":"From PHP for -name-","content":[{"type":"text\\/plain","value":"Hi -name-"},{"type":"text\\/html","value":"<b>Hi<\\/b>"}],"headers":[],"custom_args":[]}`,
      status: 202,
      check: accepted,
    },
    {
      name: 'PHP, a list of suppressed addresses',
      call: `GET /v3/suppression/spam_reports?limit=1&offset=0\n${sdk('sendgrid/8.1.11;php')}\n\n`,
      status: 200,
      check: ([one]) => one.email === 'dora@there.invalid' && Number.isInteger(one.created),
    },
    {
      name: 'Python send',
      call: `POST /v3/mail/send\n${python}\n${json}\n
{"from": {"email": "app@sender.invalid"}, "subject": "From Python", "personalizations": [{"to": [{"email": "ann@there.invalid"}, {"email": "bob@there.invalid", "name": "Bob"}]}], "content": [{"type": "text/plain", "value": "Hi"}], "attachments": [{"content": "YQ==", "type": "text/plain", "filename": "a.txt", "disposition": "attachment"}], "categories": ["receipt"], "tracking_settings": {"click_tracking": {"enable": false, "enable_text": false}}}`,
      status: 202,
      check: accepted,
    },
    {
      name: 'Python, a sender whose domain is not ours',
      call: `POST /v3/mail/send\n${python}\n${json}\n
{"from": {"email": "app@other.invalid"}, "subject": "Hi", "personalizations": [{"to": [{"email": "ann@there.invalid"}]}], "content": [{"type": "text/plain", "value": "Hi"}]}`,
      status: 403,
      check: ({ errors: [error] }) => typeof error.message === 'string' && error.field === 'from',
    },
    {
      name: 'Ruby send, to an address that complained',
      call: `POST /v3/mail/send\n${ruby}\n${json}\n
{"from":{"email":"app@sender.invalid"},"subject":"From Ruby","personalizations":[{"to":[{"email":"dora@there.invalid"}]}],"content":[{"type":"text/plain","value":"Hi"}]}`,
      status: 202,
      check: accepted,
    },
    {
      name: 'Ruby, the end of a global suppression that there is not',
      call: `DELETE /v3/asm/suppressions/global/nobody@there.invalid\n${ruby}\n\n`,
      status: 204,
      check: (body) => body === '',
    },
    {
      name: 'Go send, in the sandbox',
      call: `POST /v3/mail/send\nUser-Agent: sendgrid/3.16.0;go\nAccept: application/json\nAccept-Encoding: gzip\nAuthorization: Bearer ${key}\n${json}\n
{"from":{"name":"Acme","email":"app@sender.invalid"},"subject":"From Go","personalizations":[{"to":[{"name":"Ann","email":"ann@there.invalid"}]}],"content":[{"type":"text/plain","value":"Hi"},{"type":"text/html","value":"\\u003cb\\u003eHi\\u003c/b\\u003e"}],"mail_settings":{"sandbox_mode":{"enable":true}}}`,
      status: 200,
      check: (body) => body === '',
    },
    {
      name: 'Go, a key that is wrong',
      call: `POST /v3/mail/send\nUser-Agent: sendgrid/3.16.0;go\nAuthorization: Bearer SG.wrong\n${json}\n\n{}`,
      status: 401,
      check: ({ errors }) => errors.length === 1,
    },
  ];
}

test('recorded calls of Postmark’s and SendGrid’s SDKs in PHP, Ruby, Python and Go get what these SDKs read', async (t) => {
  const world = await startWorld(t, { settings: { POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true' } });
  await addSuppression(world.db, suppressionOf(world.orgId, 'dora@there.invalid', 'complaint'), 5000);
  for (const recorded of [...postmarkCalls(world.key), ...sendgridCalls(world.key)]) {
    const { status, headers, body } = await replay(world, recorded);
    const shown = `${recorded.name}: ${status} ${JSON.stringify(body)}`;
    t.is(status, recorded.status, shown);
    t.truthy(recorded.check!(body, headers), shown);
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

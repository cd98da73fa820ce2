/** Received mail as it is posted in each format, read as each service's libraries and documents say. */
import { createHmac, createPublicKey, createVerify } from 'node:crypto';
import { EventWebhookHeader } from '@sendgrid/eventwebhook';
import test, { type ExecutionContext } from 'ava';
import { ServerClient } from 'postmark';
import { Resend } from 'resend';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { pauseOrganization, resumeOrganization } from '#accounts/rows/pauses.ts';
import { emptySummary, receivedMail } from '#lab/received.ts';
import { type Received, startReceiver } from '#lab/scenes/webhook-receiver.ts';
import { startWebhookWorld } from '#lab/scenes/webhook-world.ts';
import { until } from '#lab/until.ts';
import { openMail, readMail } from '#mail/received/read-mail.ts';
import type { NewReceivedMail } from '#mail/received/rows/received-mails.ts';
import { recordReceived } from '#mail/received/rows/record-received.ts';
import type { WebhookFormatName } from '#mail/webhooks/subscribed-types.ts';

const image = Buffer.from('89504e470d0a1a0a00ff', 'hex');

/** A reply with a quoted mail, an image in its HTML, and a file whose name is a path. */
const reply = [
  'Authentication-Results: mail.example.com; spf=pass',
  'From: "Doe, Jöhn" <john@there.invalid>',
  'To: Shop <orders+4711@x.invalid>, =?utf-8?q?Gr=C3=BC=C3=9Fe=2C_AG?= <b@there.invalid>',
  'Cc: c@there.invalid',
  'Subject: Re: Your order',
  'Date: Sat, 28 Nov 2026 10:00:00 +0000',
  'Message-ID: <answer@there.invalid>',
  'In-Reply-To: <question@x.invalid>',
  'X-Spam-Status: No, the sender says so',
  'Received-SPF: Pass; envelope-from=forged@there.invalid',
  'MIME-Version: 1.0',
  'Content-Type: multipart/mixed; boundary=m',
  '',
  '--m',
  'Content-Type: multipart/alternative; boundary=a',
  '',
  '--a',
  'Content-Type: text/plain; charset=iso-8859-1',
  'Content-Transfer-Encoding: quoted-printable',
  '',
  'Ja, gerne f=FCr morgen.',
  '',
  'On Fri, 27 Nov 2026 at 10:00, Shop <orders@x.invalid> wrote:',
  '> When shall we deliver?',
  '--a',
  'Content-Type: text/html; charset=utf-8',
  '',
  '<p>Ja <img src="cid:logo@there"></p>',
  '--a--',
  '--m',
  'Content-Type: image/png',
  'Content-ID: <logo@there>',
  'Content-Disposition: inline; filename=logo.png',
  'Content-Transfer-Encoding: base64',
  '',
  image.toString('base64'),
  '--m',
  'Content-Type: text/plain; name="../notes.txt"',
  'Content-Disposition: attachment; filename="../notes.txt"',
  '',
  'Notes',
  '--m--',
  '',
].join('\r\n');

function mailOf(orgId: string, text: string | Buffer, given: Partial<NewReceivedMail> = {}): NewReceivedMail {
  const raw = Buffer.from(text as string);
  const { messageId, subject, fromHeader, summary } = readMail(raw);
  const verdicts = {
    ...emptySummary.verdicts,
    spf: { result: 'pass' as const, domain: 'there.invalid' },
    dkim: [{ result: 'pass' as const, domain: 'there.invalid', selector: 's' }],
  };
  const spam = { isSpam: true, score: 7.5, threshold: 5, rules: ['BAD_WORDS'] };
  return receivedMail({
    orgId,
    recipients: ['orders+4711@x.invalid', 'blind@x.invalid'],
    sender: 'bounces@there.invalid',
    messageId,
    subject,
    fromHeader,
    summary: { ...emptySummary, ...summary, verdicts, spam },
    at: Date.now(),
    ...given,
    raw,
  });
}

async function startReceiving(t: ExecutionContext) {
  const started = await startWebhookWorld(t);
  const { world, orgId, add } = started;
  const endpoint = async (format: WebhookFormatName, { path = '', types = ['email.received'] } = {}) => {
    const receiver = await startReceiver(t, { now: world.clock.now });
    const url = receiver.url.replace(
      '//',
      ['postmark', 'raw'].includes(format) ? '//actionmailbox:s%40fe@' : '//',
    );
    return { ...(await add(url + path, types, format)), receiver };
  };
  const receive = async (mail: NewReceivedMail) => {
    await recordReceived(world.db, [[mail]], Number.MAX_SAFE_INTEGER);
    return mail;
  };
  const posted = async ({ requests }: { requests: Received[] }, count = 1) => {
    await world.clock.passUntil(async () => requests.length >= count, { what: 'the posts', step: 100 });
    return requests.at(-1)!;
  };
  return { ...started, endpoint, receive, posted, mailOf: mailOf.bind(null, orgId) };
}

const formOf = ({ bytes, headers }: Received) =>
  new Response(new Uint8Array(bytes), { headers: { 'content-type': headers['content-type']! } }).formData();

const bytesOf = async (file: unknown) => Buffer.from(await (file as File).arrayBuffer());

test('our own format has the whole mail, and links to its parts that end', async (t) => {
  const { world, endpoint, receive, posted, mailOf } = await startReceiving(t);
  const { receiver, secret } = await endpoint('standard');
  receiver.secret = secret!;
  const mail = await receive(mailOf(reply));
  const { body, fault } = await posted(receiver);
  t.is(fault, null);
  t.is(body.type, 'email.received');
  const { data } = body;
  t.like(data, {
    receivedId: mail.id,
    recipients: mail.recipients,
    sender: 'bounces@there.invalid',
    from: '"Doe, Jöhn" <john@there.invalid>',
    subject: 'Re: Your order',
    messageId: 'answer@there.invalid',
    reply: 'Ja, gerne für morgen.',
    html: '<p>Ja <img src="cid:logo@there"></p>',
    omitted: [],
  });
  t.regex(data.text, /^Ja, gerne für morgen\.[\s\S]+> When shall we deliver\?/);
  t.is(data.attachments[0].contentId, 'logo@there');

  const { body: answered } = await world.call('GET', `/api/public/received/${mail.id}`);
  const withoutLinks = ({ links: _, attachments, ...rest }: typeof data) => ({
    ...rest,
    count: attachments.length,
  });
  t.deepEqual(withoutLinks(answered.mail), withoutLinks(data));

  const get = async (url: string) => {
    const response = await fetch(url.replace(/^https?:\/\/[^/]+/, world.url()));
    return {
      status: response.status,
      headers: response.headers,
      bytes: Buffer.from(await response.arrayBuffer()),
    };
  };
  const { raw, html, text } = data.links;
  t.deepEqual((await get(raw)).bytes, mail.raw);
  t.is((await get(html)).bytes.toString(), data.html);
  t.is((await get(text)).bytes.toString(), data.text);
  const file = await get(data.attachments[0].url);
  t.deepEqual(file.bytes, image);
  t.is(file.headers.get('content-type'), 'image/png');
  t.regex(file.headers.get('content-disposition')!, /^attachment; filename="logo\.png"/);
  const [path, query] = raw.split('?');
  for (const changed of [
    raw.replace(/signature=./, 'signature='),
    raw.replace('/parts/raw', '/parts/0'),
    raw.replace(/expires=\d/, 'expires=9'),
    `${path}`,
    `${path}?${query.replace(/org=[^&]+/, 'org=00000000-0000-7000-8000-000000000000')}`,
  ])
    t.is((await get(changed)).status, 404, changed);
  const pause = { reason: 'abuse', since: world.clock.now() };
  await pauseOrganization(world.db, world.orgId, pause);
  t.is((await get(raw)).status, 404, 'the organization is paused');
  await resumeOrganization(world.db, world.orgId, pause, world.clock.now());
  t.is((await get(raw)).status, 200);
  await world.clock.advance('25h');
  t.is((await get(raw)).status, 404, 'the link has expired');
});

test('the SDK of Resend verifies the post, and reads the mail and its files', async (t) => {
  const { world, endpoint, receive, posted, mailOf } = await startReceiving(t);
  const { receiver } = await endpoint('resend');
  const mail = await receive(mailOf(reply));
  const { body } = await posted(receiver);
  t.is(body.type, 'email.received');
  t.like(body.data, {
    email_id: mail.id,
    from: '"Doe, Jöhn" <john@there.invalid>',
    to: ['orders+4711@x.invalid', 'b@there.invalid'],
    cc: ['c@there.invalid'],
    bcc: [],
    received_for: mail.recipients,
    message_id: '<answer@there.invalid>',
  });
  const { receiving } = new Resend(world.key, { baseUrl: world.url() }).emails;
  const { data: found, error } = await receiving.get(body.data.email_id);
  t.is(error, null, JSON.stringify(error));
  t.regex(found!.html!, /<img src="data:image\/png;base64,/);
  t.is(
    (await receiving.get(mail.id, { html_format: 'cid' })).data!.html,
    '<p>Ja <img src="cid:logo@there"></p>',
  );
  t.is(found!.headers!['in-reply-to'], '<question@x.invalid>');
  t.is((await receiving.list()).data!.data[0]!.id, mail.id);
  const shown = '<img src="cid:logo@there">';
  const photo = Buffer.alloc(100_000).toString('base64').replace(/.{76}/g, '$&\r\n');
  const often = reply.replace(shown, shown.repeat(50)).replace(image.toString('base64'), photo);
  const { html } = (await receiving.get((await receive(mailOf(often))).id)).data!;
  t.is(html, `<p>Ja ${shown.repeat(50)}</p>`, 'fifty copies of an image are too much for an answer');
  const { data: files } = await receiving.attachments.list({ emailId: mail.id });
  t.deepEqual(
    files!.data.map(({ filename, content_disposition }) => [filename, content_disposition]),
    [
      ['logo.png', 'inline'],
      ['../notes.txt', 'attachment'],
    ],
  );
  const { data: file } = await receiving.attachments.get({ emailId: mail.id, id: '0' });
  t.is(file!.size, image.length);
  t.is((await receiving.get('0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27')).error!.name, 'not_found');
});

test('the post for Postmark has RawEmail and the reply, and its SDK reads the mail', async (t) => {
  const { world, endpoint, receive, posted, mailOf } = await startReceiving(t);
  const { receiver } = await endpoint('postmark');
  const mail = await receive(mailOf(reply));
  const { body, headers } = await posted(receiver);
  t.is(headers.authorization, `Basic ${Buffer.from('actionmailbox:s@fe').toString('base64')}`);
  t.like(body, {
    MessageStream: 'inbound',
    From: 'john@there.invalid',
    FromFull: { Email: 'john@there.invalid', Name: 'Doe, Jöhn', MailboxHash: '' },
    To: 'Shop <orders+4711@x.invalid>, "Grüße, AG" <b@there.invalid>',
    OriginalRecipient: 'orders+4711@x.invalid, blind@x.invalid',
    MailboxHash: '4711',
    MessageID: mail.id,
    StrippedTextReply: 'Ja, gerne für morgen.',
    RawEmail: `X-Original-To: orders+4711@x.invalid\r\nX-Original-To: blind@x.invalid\r\n${reply}`,
  });
  t.deepEqual(Buffer.from(body.Attachments[0].Content, 'base64'), image);
  t.is(body.Attachments[1].Name, '.._notes.txt');
  const values = (wanted: string) =>
    body.Headers.filter(({ Name }: { Name: string }) => Name === wanted).map(
      ({ Value }: { Value: string }) => Value,
    );
  t.deepEqual(values('X-Spam-Status'), ['Yes'], 'the sender judges itself not');
  t.regex(values('Received-SPF').join(), /^Pass .*envelope-from="bounces@there\.invalid"$/);
  const { port } = new URL(world.url());
  const client = new ServerClient(world.key, { requestHost: `127.0.0.1:${port}`, useHttps: false });
  t.is((await client.getInboundMessages()).InboundMessages[0]!.MessageID, mail.id);
  t.like(await client.getInboundMessageDetails(mail.id), { StrippedTextReply: 'Ja, gerne für morgen.' });
});

test('RawEmail has every byte of a mail that is not UTF-8, and one that cannot be written holds up none behind it', async (t) => {
  const { endpoint, receive, posted, mailOf } = await startReceiving(t);
  const { receiver } = await endpoint('postmark');
  const head =
    'Subject: Latin\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: 8bit\r\n\r\n';
  await receive(mailOf(Buffer.from(`${head}f\xfcr\r\n`, 'latin1')));
  const { body } = await posted(receiver);
  t.is(openMail(Buffer.from(body.RawEmail))!.content.text, 'für\r\n');
  // Its record says more files than its bytes have.
  const { attachments } = mailOf(reply).summary;
  const other = mailOf('Subject: Other\r\n\r\nOther\r\n', { recipients: ['orders@x.invalid'] });
  await receive({ ...other, summary: { ...other.summary, attachments } });
  const second = (await posted(receiver, 2)).body;
  t.like(second, { Subject: 'Other', TextBody: '', Attachments: [] });
  t.is(second.RawEmail, 'Subject: Other\r\n\r\nOther\r\n');
  await receive(mailOf('Subject: Third\r\n\r\nThird\r\n'));
  t.is((await posted(receiver, 3)).body.Subject, 'Third');
});

test('the form for SendGrid is signed, all in UTF-8, with what its documents name', async (t) => {
  const { endpoint, receive, posted, mailOf } = await startReceiving(t);
  const { receiver, publicKey } = await endpoint('sendgrid');
  const mail = await receive(mailOf(reply));
  const post = await posted(receiver);
  const header = (name: string) => String(post.headers[name.toLowerCase()]);
  const [signature, timestamp] = [EventWebhookHeader.SIGNATURE(), EventWebhookHeader.TIMESTAMP()].map(header);
  const key = createPublicKey({ key: Buffer.from(publicKey!, 'base64'), type: 'spki', format: 'der' });
  // The service's own library reads a body as text, which one with files is not.
  const signed = createVerify('sha256').update(timestamp!).update(post.bytes);
  t.true(signed.verify(key, signature!, 'base64'));
  const form = await formOf(post);
  const json = (name: string) => JSON.parse(String(form.get(name)));
  t.deepEqual(json('envelope'), { to: mail.recipients, from: 'bounces@there.invalid' });
  t.is(form.get('dkim'), '{@there.invalid : pass}');
  t.is(form.get('SPF'), 'pass');
  t.is(form.get('spam_score'), '7.5');
  t.regex(String(form.get('text')), /^Ja, gerne für morgen\./);
  t.is(json('charsets').text, 'utf-8');
  t.is(form.get('attachments'), '2');
  t.like(json('attachment-info').attachment2, {
    filename: '.._notes.txt',
    name: '.._notes.txt',
    type: 'text/plain',
  });
  t.deepEqual(json('content-ids'), { 'logo@there': 'attachment1' });
  t.deepEqual(await bytesOf(form.get('attachment1')), image);
  t.regex(String(form.get('headers')), /^From: "Doe, Jöhn" <john@there\.invalid>$/m);
});

test('the form for Mailgun is signed; a URL that ends in mime gets the message', async (t) => {
  const { endpoint, receive, posted, mailOf } = await startReceiving(t);
  const [parsed, mime] = await Promise.all([endpoint('mailgun'), endpoint('mailgun', { path: '/mime' })]);
  const octets = Buffer.concat([Buffer.from('Subject: latin\r\n\r\n'), Buffer.from('f\xfcr', 'latin1')]);
  const mail = await receive(mailOf(reply));
  const form = await formOf(await posted(parsed.receiver));
  const signed = createHmac('sha256', parsed.secret!).update(`${form.get('timestamp')}${form.get('token')}`);
  t.is(form.get('signature'), signed.digest('hex'));
  t.is(form.get('recipient'), mail.recipients.join());
  t.is(form.get('stripped-text'), 'Ja, gerne für morgen.');
  t.is(form.get('attachment-count'), '2');
  t.deepEqual(JSON.parse(String(form.get('content-id-map'))), { '<logo@there>': 'attachment-1' });
  t.is(form.get('In-Reply-To'), '<question@x.invalid>');
  t.true(
    JSON.parse(String(form.get('message-headers'))).some(([name]: [string]) => name === 'X-Mailgun-Sflag'),
  );
  const whole = new URLSearchParams((await posted(mime.receiver)).raw).get('body-mime')!;
  t.true(whole.startsWith('X-Original-To: orders+4711@x.invalid\r\nX-Original-To: blind@x.invalid\r\n'));
  await receive(mailOf(octets, { recipients: ['orders@x.invalid'] }));
  const { raw } = await posted(mime.receiver, 2);
  const sent = new URLSearchParams(raw).get('body-mime')!;
  t.is(openMail(Buffer.from(sent))!.content.text.trim(), 'für', 'no byte is lost');
  t.false(sent.includes('X-Original-To'), 'the form names the only recipient');
});

test('the raw format is the mail as it came, after what the envelope says', async (t) => {
  const { endpoint, receive, posted, mailOf } = await startReceiving(t);
  const { receiver } = await endpoint('raw');
  const mail = await receive(mailOf(reply));
  const { headers, raw } = await posted(receiver);
  t.is(headers['content-type'], 'message/rfc822');
  t.is(headers.authorization, `Basic ${Buffer.from('actionmailbox:s@fe').toString('base64')}`);
  const [first, ...others] = mail.recipients.map((one) => `X-Original-To: ${one}\r\n`);
  t.is(raw, `Return-Path: <bounces@there.invalid>\r\n${first}${others.join('')}${reply}`);
});

test('the route decides which endpoint gets a mail, a large one has links, and one that cannot be read is posted', async (t) => {
  const { world, endpoint, receive, posted, mailOf } = await startReceiving(t);
  const [all, own] = await Promise.all([
    endpoint('postmark'),
    endpoint('sendgrid', { types: ['email.bounced'] }),
  ]);
  await receive(mailOf(reply, { action: 'store' }));
  const routed = await receive(mailOf(reply, { webhookId: own.id }));
  const form = await formOf(await posted(own.receiver));
  t.is(JSON.parse(String(form.get('envelope'))).to[0], routed.recipients[0]);
  const large = `Subject: large\r\n\r\n${'\x01'.repeat(10)}${`${'a'.repeat(998)}\r\n`.repeat(11_000)}`;
  await receive(mailOf(large));
  const { body } = await posted(all.receiver);
  t.is(all.receiver.requests.length, 1, 'neither what is stored nor what another endpoint gets');
  t.is(body.RawEmail, undefined);
  t.is(body.TextBody, '');
  t.regex(body.RawEmailUrl, /\/parts\/raw\?/);
  t.regex(body.TextBodyUrl, /\/parts\/text\?/);
  const nested = `Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--b\r\n\r\n'.repeat(2000)}`;
  t.is(openMail(Buffer.from(nested)), null);
  await receive(mailOf(nested, { recipients: ['orders@x.invalid'] }));
  t.is((await posted(all.receiver, 2)).body.RawEmail, nested);
  await until(async () => (await world.db('webhook_messages').whereNotNull('lease_owner')).length === 0);
});

test('controls that JSON and forms escape make no post longer than its bound, and none is lost', async (t) => {
  const { endpoint, receive, posted, mailOf } = await startReceiving(t);
  const { receiver } = await endpoint('postmark');
  await receive(mailOf(`Subject: controls\r\n\r\n${`${'\x01'.repeat(900)}\r\n`.repeat(8000)}`));
  const { bytes, body } = await posted(receiver);
  t.true(bytes.length < 32 * 1024 * 1024, `${bytes.length}`);
  t.regex(body.RawEmailUrl, /\/parts\/raw\?/);
});

test('a test key reads test mail only, another organization nothing, and each needs the scope', async (t) => {
  const { world, receive, mailOf } = await startReceiving(t);
  const live = await receive(mailOf(reply));
  const tried = await receive(mailOf(reply, { domain: 'received.test' }));
  const { body: made } = await world.call('POST', '/api/public/keys', {
    body: JSON.stringify({ label: 'test', scopes: ['received:read'], test: true }),
  });
  const headers = { authorization: `Bearer ${made.key}` };
  const list = await world.call('GET', '/api/public/received', { headers });
  t.deepEqual(
    list.body.mails.map(({ receivedId, test: isTest }: { receivedId: string; test: boolean }) => [
      receivedId,
      isTest,
    ]),
    [[tried.id, true]],
  );
  for (const path of ['', '/raw', '/attachments/0']) {
    t.is((await world.call('GET', `/api/public/received/${live.id}${path}`, { headers })).status, 404, path);
    t.is(
      (await fetch(`${world.url()}/api/public/received/${tried.id}${path}`, { headers })).status,
      200,
      path,
    );
  }
  t.is((await world.call('GET', '/api/public/received')).body.mails.length, 2);
  const { body: narrow } = await world.call('POST', '/api/public/keys', {
    body: JSON.stringify({ label: 'narrow', scopes: ['email:read'] }),
  });
  const refused = await world.call('GET', '/api/public/received', {
    headers: { authorization: `Bearer ${narrow.key}` },
  });
  t.is(refused.status, 403);
  const otherId = await insertOrganization(world.db, 'Other', Date.now());
  const foreign = await receive(receivedMail({ orgId: otherId }));
  for (const path of ['', '/raw', '/attachments/0'])
    t.is((await world.call('GET', `/api/public/received/${foreign.id}${path}`)).status, 404, path);
});

test('test mail to received.test comes in, is posted as a test, and is answered', async (t) => {
  const { world, endpoint, posted, receive, mailOf } = await startReceiving(t);
  const { receiver, secret } = await endpoint('standard');
  receiver.secret = secret!;
  const { body: made } = await world.call('POST', '/api/public/keys', {
    body: JSON.stringify({ label: 'test', scopes: ['full_access'], test: true }),
  });
  const headers = { authorization: `Bearer ${made.key}` };
  const send = (fields: object) =>
    world.call('POST', '/api/public/email/send', {
      headers,
      body: JSON.stringify({ from: 'shop@postern.test', to: 'ann@received.test', text: 'Hello', ...fields }),
    });
  await send({ subject: 'Hello', headers: { References: '<first@there.invalid>' } });
  const { body } = await posted(receiver);
  t.like(body.data, { test: true, recipients: ['ann@received.test'], subject: 'Hello', text: 'Hello\r\n' });
  const { receivedId, messageId } = body.data;
  const events = await world.call('GET', '/api/public/events?type=email.received', { headers });
  t.is(events.body.events[0].data.receivedId, receivedId);

  t.is((await send({ to: 'bob@postern.test', subject: undefined, inReplyTo: receivedId })).status, 200);
  const [answer] = await world.db('emails').where({ subject: 'Re: Hello' });
  t.truthy(answer);
  const tried = await world.call('POST', '/api/public/email/send?dryRun=true', {
    headers,
    body: JSON.stringify({
      from: 'shop@postern.test',
      to: 'bob@postern.test',
      text: 'x',
      inReplyTo: receivedId,
    }),
  });
  const headerValue = (wanted: string) =>
    tried.body.message.headers.find(({ name }: { name: string }) => name === wanted)?.value;
  t.is(headerValue('In-Reply-To'), `<${messageId}>`);
  t.is(headerValue('References'), `<first@there.invalid> <${messageId}>`);
  t.is(headerValue('Subject'), 'Re: Hello');
  const live = await receive(mailOf(reply));
  for (const id of [live.id, '0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27', 'x']) {
    const refused = await send({ to: 'bob@postern.test', inReplyTo: id });
    t.is(refused.status, 400, id);
    t.deepEqual(refused.body.issues[0].path, ['inReplyTo'], JSON.stringify(refused.body));
  }
  t.deepEqual((await send({ subject: undefined })).body.issues[0].path, ['subject']);
});

test('a mail that is one file is posted as a file, and its header says nothing of how that was written', async (t) => {
  const { endpoint, receive, posted, mailOf } = await startReceiving(t);
  const { receiver } = await endpoint('sendgrid');
  const fields = [
    'From: a@there.invalid',
    'Content-Type: application/pdf; name=a.pdf',
    'Content-Disposition: attachment; filename=a.pdf',
    'Content-Transfer-Encoding: base64',
  ];
  await receive(mailOf(`${fields.join('\r\n')}\r\n\r\n${image.toString('base64')}\r\n`));
  const form = await formOf(await posted(receiver));
  t.deepEqual(await bytesOf(form.get('attachment1')), image);
  t.notRegex(String(form.get('headers')), /^content-(?:disposition|transfer-encoding):/im);
});

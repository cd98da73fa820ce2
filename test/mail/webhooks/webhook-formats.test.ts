/** Webhooks in the formats of other services, read as their own libraries and documents say. */
import { createHmac } from 'node:crypto';
import { EventWebhook, EventWebhookHeader } from '@sendgrid/eventwebhook';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { Resend } from 'resend';
import { Webhook } from 'svix';
import { addSuppression, suppressionOf } from '#accounts/rows/suppressions.ts';
import { anyText } from '#lab/runs.ts';
import { type Received, startReceiver } from '#lab/scenes/webhook-receiver.ts';
import { openMessages, sendAll, startWebhookWorld } from '#lab/scenes/webhook-world.ts';
import { until } from '#lab/until.ts';
import type { EventRecord } from '#mail/record/rows/read-events.ts';
import { changeWebhook, rotateSecret } from '#mail/webhooks/endpoints.ts';
import { formatOf } from '#mail/webhooks/formats/all-formats.ts';
import { wants, webhookFormats } from '#mail/webhooks/subscribed-types.ts';
import { eventTypes } from '#platform/values/glossary.ts';

/** Nothing that a format writes is an hour old: the libraries refuse posts older than five minutes. */
async function startFormats(t: ExecutionContext) {
  const world = await startWebhookWorld(t);
  const endpoint = async (format: (typeof webhookFormats)[number]) => {
    const receiver = await startReceiver(t, { now: world.world.clock.now });
    const url = format === 'postmark' ? receiver.url.replace('//', '//ann:s%40fe@') : receiver.url;
    return { ...(await world.add(url, [], format)), receiver };
  };
  return { ...world, endpoint };
}

const eventsIn = (requests: Received[], read: (body: Received['body']) => string) =>
  [...new Set(requests.map(({ body }) => read(body)))].sort();

test('each service’s own check accepts our posts, and finds the events under its names', async (t) => {
  const { world, orgId, endpoint } = await startFormats(t);
  const [resend, postmark, sendgrid, mailgun] = await Promise.all(
    (['resend', 'postmark', 'sendgrid', 'mailgun'] as const).map(endpoint),
  );
  const [, , gone] = await sendAll(world, orgId);
  await until(() => mailgun!.receiver.requests.some(({ body }) => body['event-data'].event === 'complained'));
  await until(async () => (await openMessages(world)).length === 0);

  const { webhooks } = new Resend('re_unused');
  const now = Date.now;
  t.teardown(() => {
    Date.now = now;
  });
  Date.now = () => resend!.receiver.requests.at(-1)!.timestamp * 1000;
  for (const { raw, headers } of resend!.receiver.requests) {
    const [id, timestamp, signature] = ['id', 'timestamp', 'signature'].map(
      (name) => headers[`svix-${name}`],
    );
    const signed = { id: `${id}`, timestamp: `${timestamp}`, signature: `${signature}` };
    t.notThrows(() => webhooks.verify({ payload: raw, headers: signed, webhookSecret: resend!.secret! }));
    t.notThrows(() => new Webhook(resend!.secret!).verify(raw, headers as Record<string, string>));
  }
  Date.now = now;
  t.deepEqual(
    eventsIn(resend!.receiver.requests, ({ type }) => type),
    ['bounced', 'clicked', 'complained', 'delivered', 'delivery_delayed', 'opened', 'sent'].map(
      (name) => `email.${name}`,
    ),
  );
  const bounced = resend!.receiver.requests.find(({ body }) => body.type === 'email.bounced')!.body.data;
  t.like(bounced, {
    email_id: gone,
    to: ['unknown@there.invalid'],
    tags: { plan: 'pro' },
    bounce: { type: 'Permanent', subType: 'General' },
  });

  const credentials = `Basic ${Buffer.from('ann:s@fe').toString('base64')}`;
  for (const { headers } of postmark!.receiver.requests) t.is(headers.authorization, credentials);
  t.deepEqual(
    eventsIn(postmark!.receiver.requests, ({ RecordType }) => RecordType),
    ['Bounce', 'Click', 'Delivery', 'Open', 'SpamComplaint', 'SubscriptionChange'],
  );
  const hard = postmark!.receiver.requests.find(({ body }) => body.RecordType === 'Bounce')!.body;
  t.like(hard, { Type: 'HardBounce', TypeCode: 1, Email: 'unknown@there.invalid', MessageID: gone });
  t.like(hard, { Metadata: { plan: 'pro' }, Inactive: true, Tag: '' });
  t.true(Number.isInteger(hard.ID));

  const verifier = new EventWebhook();
  const key = verifier.convertPublicKeyToECDSA(sendgrid!.publicKey!);
  for (const { raw, headers } of sendgrid!.receiver.requests) {
    const [signature, timestamp] = [EventWebhookHeader.SIGNATURE(), EventWebhookHeader.TIMESTAMP()].map(
      (name) => `${headers[name.toLowerCase()]}`,
    );
    t.true(verifier.verifySignature(key, raw, signature!, timestamp!));
    t.false(verifier.verifySignature(key, `${raw} `, signature!, timestamp!));
  }
  t.is(sendgrid!.secret, null, 'the key that signs is shown to nobody');
  t.deepEqual(
    eventsIn(sendgrid!.receiver.requests, ([{ event }]) => event),
    ['bounce', 'click', 'deferred', 'delivered', 'open', 'processed', 'spamreport'],
  );
  const failed = sendgrid!.receiver.requests.find(({ body }) => body[0].event === 'bounce')!.body[0];
  t.like(failed, { email: 'unknown@there.invalid', sg_message_id: gone, plan: 'pro', type: 'bounce' });
  t.regex(failed.status, /^5\.\d+\.\d+$/);

  for (const { body } of mailgun!.receiver.requests) {
    const { timestamp, token, signature } = body.signature;
    const expected = createHmac('sha256', mailgun!.secret!).update(`${timestamp}${token}`).digest('hex');
    t.is(signature, expected);
    t.is(token.length, 50);
  }
  t.deepEqual(
    eventsIn(mailgun!.receiver.requests, (body) => body['event-data'].event),
    ['accepted', 'clicked', 'complained', 'delivered', 'failed', 'opened'],
  );
  const permanent = mailgun!.receiver.requests.find(
    ({ body }) => body['event-data'].severity === 'permanent',
  )!.body['event-data'];
  t.like(permanent, {
    recipient: 'unknown@there.invalid',
    'recipient-domain': 'there.invalid',
    reason: 'bounce',
    'user-variables': { plan: 'pro' },
  });
  t.false(permanent.message.headers['message-id'].includes('<'));
});

test('a test, a rotation, and a format that has no secret', async (t) => {
  const { world, seal, endpoint } = await startFormats(t);
  const { db, clock } = world;
  for (const format of webhookFormats) {
    const { webhook, receiver } = await endpoint(format);
    const { body } = await world.call('POST', `/api/public/webhooks/${webhook.id}/test`);
    t.true(body.ok, format);
    t.is(receiver.requests.length, 1, format);
    t.false(body.attempt.url.includes('s%40fe'), 'credentials appear nowhere');
    await changeWebhook({ db, now: clock.now() }, webhook, { enabled: false });
    const rotated = await rotateSecret(db, webhook, { seal, now: clock.now() }).catch(
      ({ message }: Error) => message,
    );
    if (format === 'postmark' || format === 'raw') t.regex(String(rotated), /not signed/);
    else t.is((rotated as { secret: string | null }).secret === null, format === 'sendgrid', format);
  }
});

test('a URL has credentials in the format of Postmark only, and they are not shown', async (t) => {
  const { world, add } = await startFormats(t);
  const receiver = await startReceiver(t, { now: world.clock.now });
  const open = await add(receiver.url, [], 'postmark');
  t.true((await world.call('POST', `/api/public/webhooks/${open.id}/test`)).body.ok);
  t.is(receiver.requests[0]!.headers.authorization, undefined);
  const url = 'http://ann:secret@127.0.0.1:8080/hook';
  await t.throwsAsync(add(url), { message: /user name or password/ });
  await t.throwsAsync(add(url, [], 'sendgrid'), { message: /user name or password/ });
  const { webhook, secret } = await add(url, [], 'postmark');
  t.is(webhook.url, 'http://127.0.0.1:8080/hook');
  t.is(secret, null);
  t.false(JSON.stringify(webhook).includes('ann:secret'));
});

test('a bounce has the kind that consumers act on: an address that is dead, or a mail that did not pass', (t) => {
  const write = (name: 'postmark' | 'sendgrid', bounce: object) => {
    const email = { id: 'm', messageId: 'm', from: 'a@a.example', subject: 's', tags: {}, isTest: false };
    const rest = { id: 'e', orgId: 'o', at: 1, recipient: 'b@b.example', position: 7, email };
    const format = formatOf(name);
    const options = { secrets: [format.newSecret().secret], timestamp: 1 };
    return JSON.parse(format.write({ ...rest, type: 'email.bounced', data: { bounce } }, options));
  };
  for (const [type, category, postmark, sendgrid] of [
    ['hard', 'unknown_user', 'HardBounce', 'bounce Invalid Address'],
    ['hard', 'dns', 'HardBounce', 'bounce Invalid Address'],
    ['soft', 'dns', 'DnsError', 'blocked Technical Failure'],
    ['soft', 'mailbox_full', 'SoftBounce', 'blocked Mailbox Unavailable'],
    ['soft', 'spam', 'SpamNotification', 'blocked Content'],
    ['soft', 'blocked', 'Blocked', 'blocked Reputation'],
    ['soft', 'other', 'SoftBounce', 'blocked Unclassified'],
  ] as const) {
    t.is(write('postmark', { type, category }).Type, postmark, category);
    const [event] = write('sendgrid', { type, category });
    t.is(`${event.type} ${event.bounce_classification}`, sendgrid, category);
  }
});

test('sendgrid/docs#6325: mail that is not sent to a suppressed address says for which reason it is on the list', async (t) => {
  const { world, orgId, endpoint } = await startFormats(t);
  const [sendgrid, mailgun] = await Promise.all([endpoint('sendgrid'), endpoint('mailgun')]);
  const reasons = {
    bounced: 'hard bounce: 550 5.1.1 No such user',
    angry: 'complaint',
    left: 'unsubscribed',
  };
  for (const [name, reason] of Object.entries(reasons))
    await addSuppression(world.db, suppressionOf(orgId, `${name}@there.invalid`, reason), world.clock.now());
  const to = [...Object.keys(reasons), 'ann'].map((name) => `${name}@there.invalid`);
  const { body } = await world.send({ to });
  const { events } = await world.get(body.emailId);
  const told = events.filter(({ type }: { type: string }) => type === 'email.suppressed');
  t.deepEqual(
    told.map(({ data }: { data: { reason: string } }) => data.reason),
    Object.values(reasons),
  );
  const isDropped = ({ body }: Received) => body[0].event === 'dropped';
  const isFailed = ({ body }: Received) => body['event-data'].event === 'failed';
  await until(() => sendgrid!.receiver.requests.filter(isDropped).length === 3);
  await until(() => mailgun!.receiver.requests.filter(isFailed).length === 3);
  t.deepEqual(
    Object.fromEntries(
      sendgrid!.receiver.requests.filter(isDropped).map(({ body: [one] }) => [one.email, one.reason]),
    ),
    {
      'bounced@there.invalid': 'Bounced Address',
      'angry@there.invalid': 'Spam Reporting Address',
      'left@there.invalid': 'Unsubscribed Address',
    },
  );
  const failed = mailgun!.receiver.requests.filter(isFailed).map(({ body }) => body['event-data']);
  t.deepEqual(
    Object.fromEntries(failed.map((one) => [one.recipient, [one.reason, one['delivery-status'].code]])),
    {
      'bounced@there.invalid': ['suppress-bounce', 605],
      'angry@there.invalid': ['suppress-complaint', 607],
      'left@there.invalid': ['suppress-unsubscribe', 606],
    },
  );
});

test('whatever happens, every format writes less than 20 kB of JSON, and tags replace no member', (t) => {
  const text = anyText(4000);
  const key = fc.constantFrom('tag', 'event', 'email', 'timestamp', 'id', '__proto__', 'plan');
  fc.assert(
    fc.property(
      fc.constantFrom(...eventTypes),
      fc.dictionary(key, text, { maxKeys: 10 }),
      text,
      fc.boolean(),
      (type, tags, diagnostic, isDeleted) => {
        const about = { id: 'm', messageId: 'm@a.example', from: 'a@a.example' };
        const email = { ...about, subject: diagnostic, tags, isTest: false };
        const event: EventRecord = {
          id: 'e',
          orgId: 'o',
          type,
          at: 1,
          recipient: 'b@b.example',
          position: 7,
          data: { diagnostic, url: diagnostic, userAgent: diagnostic, bounce: { type: 'soft', diagnostic } },
          email: isDeleted ? null : email,
        };
        for (const name of webhookFormats) {
          const format = formatOf(name);
          if (type === 'email.received' || !wants({ types: [], format: name }, type)) continue;
          const { secret } = format.newSecret();
          const body = format.write(event, { secrets: [secret], timestamp: 1 });
          t.true(Buffer.byteLength(body) < 20_000);
          const written = JSON.parse(body);
          if (name === 'sendgrid') t.is(written[0].email, 'b@b.example');
        }
      },
    ),
    { numRuns: 100 },
  );
});

test('an application written for Mailgun refuses an event by 406, once, and gets the next of its email', async (t) => {
  const { world, endpoint } = await startFormats(t);
  const { receiver } = await endpoint('mailgun');
  receiver.answer = (_request, response) => response.writeHead(406).end();
  const { body } = await world.send({ to: 'ann@there.invalid' });
  await world.when(body.emailId, ({ status }) => status === 'delivered');
  await until(async () => receiver.requests.length > 1 && (await openMessages(world)).length === 0);
  t.deepEqual(
    receiver.requests.map(({ body: { 'event-data': event } }) => event.event),
    ['accepted', 'delivered'],
  );
});

/** Postmark's official SDK against a real server: what it sends arrives, and it makes its own classes of our errors. */
import test from 'ava';
import PostalMime from 'postal-mime';
import { Errors, type Message, Models, ServerClient } from 'postmark';
import { addSuppression, suppressionOf } from '#accounts/rows/suppressions.ts';
import { areSigned } from '#lab/dkim.ts';
import { asNewTenant, startWorld, type World } from '#lab/scenes/world.ts';

const sdk = (world: World, key = world.key, path = '') =>
  new ServerClient(key, { requestHost: `${new URL(world.url()).host}${path}`, useHttps: false });

const mail: Message = { From: 'app@sender.invalid', To: 'ann@there.invalid', Subject: 'Hi', TextBody: 'Hi' };

test('Postmark: what the SDK sends arrives, signed, with every field', async (t) => {
  const world = await startWorld(t);
  const sent = await sdk(world).sendEmail({
    From: '"Acme, Inc." <app@sender.invalid>',
    To: '"Ann, \\"the\\" first" <ann@there.invalid>,, bob@there.invalid',
    Cc: '=?utf-8?Q?Cl=C3=A9o_=22C=2C=22?= <cleo@there.invalid>,',
    Bcc: 'dora@there.invalid',
    ReplyTo: 'help@sender.invalid, desk@sender.invalid',
    Subject: 'Grüße',
    HtmlBody: '<p>Hi <img src="cid:logo"><a href="https://shop.invalid/">shop</a></p>',
    TextBody: 'Hi',
    Tag: 'welcome',
    Metadata: { plan: 'pro' },
    Headers: [{ Name: 'X-Entity-Ref-ID', Value: '7' }],
    TrackOpens: true,
    TrackLinks: Models.LinkTrackingOptions.None,
    MessageStream: 'outbound',
    Attachments: [
      {
        Name: 'logo.png',
        Content: Buffer.from('png').toString('base64'),
        ContentType: 'image/png',
        ContentID: 'cid:logo',
      },
    ],
  });
  t.like(sent, { ErrorCode: 0, Message: 'OK', Bcc: 'dora@there.invalid' });
  t.true(Math.abs(Date.parse(sent.SubmittedAt) - world.clock.now()) < 60_000);
  const kept = await world.when(sent.MessageID, ({ status }) => status === 'delivered');
  t.deepEqual(kept.tags, { plan: 'pro', tag: 'welcome' });
  t.deepEqual(kept.tracking, { openTracking: true, clickTracking: false });
  t.deepEqual(
    [kept.to, kept.cc, kept.bcc],
    [['ann@there.invalid', 'bob@there.invalid'], ['cleo@there.invalid'], ['dora@there.invalid']],
  );
  const { raw } = world.mx[0]!.messages.find(({ to }) => to[0]!.startsWith('dora'))!;
  await areSigned(t, world);
  const parsed = await PostalMime.parse(raw);
  t.deepEqual(parsed.from, { name: 'Acme, Inc.', address: 'app@sender.invalid' });
  t.deepEqual(parsed.to![0], { name: 'Ann, "the" first', address: 'ann@there.invalid' });
  t.deepEqual(parsed.cc, [{ name: 'Cléo "C,"', address: 'cleo@there.invalid' }]);
  t.deepEqual(
    parsed.replyTo!.map(({ address }) => address),
    ['help@sender.invalid', 'desk@sender.invalid'],
  );
  t.is(parsed.headers.find(({ key }) => key === 'x-entity-ref-id')!.value, '7');
  t.is(parsed.attachments[0]!.contentId, '<logo>');
  t.false(raw.includes('dora@'), 'bcc is in no header');
});

test('Postmark: the SDK makes its classes of our errors, and nothing is charged', async (t) => {
  const world = await startWorld(t);
  const refused = async (change: object, client = sdk(world)) =>
    (await t.throwsAsync(client.sendEmail({ ...mail, ...change } as never))) as Errors.PostmarkError;
  t.true((await refused({}, sdk(world, 'em_wrong'))) instanceof Errors.InvalidAPIKeyError);
  t.like(await refused({}, sdk(world, 'em_wrong')), { statusCode: 401, code: 10 });
  const noAddress = await refused({ To: 'ann@there.invalid, nobody' });
  t.true(noAddress instanceof Errors.InvalidEmailRequestError);
  t.like(noAddress, { code: 300, message: "Invalid 'To' address: 'nobody'." });
  for (const list of ['a:b;', 'a:', '"\\\\', '<', '=?utf-8?Q?a?= ', 'a@b.cd '])
    t.is((await refused({ To: list.repeat(20_000) })).code, 300, list);
  for (const [change, message] of [
    [{ To: undefined }, /^To/],
    [{ To: Array.from({ length: 51 }, (_, n) => `a${n}@there.invalid`).join(',') }, /50/],
    [{ Subject: undefined }, /^Subject/],
    [{ TextBody: '' }, /^(HtmlBody|html)/],
    [{ TrackLinks: 'Some' }, /^TrackLinks/],
    [{ Metadata: { plan: ['a'] } }, /^Metadata/],
    [{ Headers: [{ Name: 'Subject', Value: 'x' }] }, /Subject cannot be set/],
    [{ Headers: ['1', '2'].map((Value) => ({ Name: 'X-A', Value })) }, /X-A is given twice, with different/],
    [{ Attachments: [{ Name: 'a.txt', Content: '?' }] }, /^Attachments/],
    [{ Attachments: [{ Name: 'a.exe', Content: 'aGk=' }] }, /^Attachments\.0\.Name: /],
    [{ MessageStream: 'newsletter' }, /no message stream "newsletter"/],
    [{ MessageStream: 'news\0' }, /no message stream "news/],
    [{ TemplateId: 7 }, /no templates/],
  ] as const)
    t.regex((await refused(change)).message, message);
  t.like(await refused({ From: 'app@other.invalid' }), { statusCode: 422, code: 400 });
  t.true((await refused({ From: 'app@other.invalid' })) instanceof Errors.ApiInputError);
  for (const path of ['withTemplate', 'withTemplate/', 'batchWithTemplates'])
    t.regex((await post(world, `/email/${path}`, '{"TemplateId":7}')).Message, /no templates/);
  t.like(await post(world, '/email', '{'), { ErrorCode: 300 });
  t.like(await post(world, '/email', mail, ''), { ErrorCode: 10 });
  t.is((await world.db('emails')).length, 0);
  t.is((await world.db('credit_entries').where('change', '<', 0)).length, 0);

  const huge = await refused({ HtmlBody: 'x'.repeat(21 * 1024 * 1024) });
  t.true(huge instanceof Errors.UnknownError);
  t.like(huge, { statusCode: 413, code: 300 });

  await world.db('organizations').update({ emails_per_day: 1 });
  await sdk(world).sendEmail(mail);
  t.true((await refused({})) instanceof Errors.RateLimitExceededError);
  t.like(await refused({}, sdk(await asNewTenant(world, { quota: 0 }))), { statusCode: 422, code: 405 });
  const broken = await asNewTenant(world);
  await world.db('domains').where({ org_id: broken.orgId }).update({ dkim_private_key: 'broken' });
  const failed = await refused({}, sdk(broken));
  t.true(failed instanceof Errors.InternalServerError);
  t.like(failed, { statusCode: 500, code: 500 });
  await world.stop();
  t.like(await refused({}), { statusCode: 0, name: 'PostmarkError' });
});

test('Postmark: inactive recipients are named in the words that the SDK reads; a batch has an error for each email', async (t) => {
  const world = await startWorld(t);
  for (const address of ['dora@there.invalid', 'emil@there.invalid'])
    await addSuppression(world.db, suppressionOf(world.orgId, address, 'manual'), world.clock.now());
  const client = sdk(world);
  const To = 'Dora <dora@there.invalid>, emil@there.invalid';
  const refused = await t.throwsAsync(
    client.sendEmail({ ...mail, To: 'Dora <dora@there.invalid>', Bcc: 'emil@there.invalid' }),
  );
  t.true(refused instanceof Errors.InactiveRecipientsError);
  t.deepEqual((refused as Errors.InactiveRecipientsError).recipients, [
    'dora@there.invalid',
    'emil@there.invalid',
  ]);
  t.like(refused, { statusCode: 422, code: 406 });
  const copies = await client.sendEmail({ ...mail, To, Cc: mail.To });
  const { recipients } = await world.when(copies.MessageID, ({ status }) => status === 'partially_delivered');
  t.deepEqual(
    recipients.map(({ status }: { status: string }) => status),
    ['suppressed', 'suppressed', 'delivered'],
  );
  const partly = await client.sendEmail({ ...mail, To: `${mail.To}, ${To}` });
  t.is(partly.ErrorCode, 0);
  // As Anymail reads it.
  t.is(
    /inactive addresses:\s*(.*)\.\s*Inactive recipients/.exec(partly.Message)![1],
    'dora@there.invalid, emil@there.invalid',
  );
  const batch = [mail, mail, { ...mail, To }, { ...mail, From: 'app@other.invalid' }, 'x'];
  const headers = { 'idempotency-key': 'once' };
  const first = await post(world, '/email/batch', batch, world.key, headers);
  t.deepEqual(
    first.map(({ ErrorCode }: { ErrorCode: number }) => ErrorCode),
    [0, 0, 406, 400, 300],
  );
  t.not(first[0].MessageID, first[1].MessageID);
  const again = await post(world, '/email/batch', batch, world.key, headers);
  t.deepEqual(
    again.map(({ MessageID }: { MessageID?: string }) => MessageID),
    [first[0].MessageID, first[1].MessageID, undefined, undefined, undefined],
  );
  const many = await client.sendEmailBatch(Array.from({ length: 30 }, () => mail));
  t.is(new Set(many.map(({ MessageID }) => MessageID)).size, 30);
  for (const { MessageID } of many) await world.when(MessageID, ({ status }) => status === 'delivered');
  await areSigned(t, world);
  const tooMany = await t.throwsAsync(client.sendEmailBatch(Array.from({ length: 501 }, () => mail)));
  t.regex(tooMany!.message, /500 emails/);
});

test('Postmark: messages are found with their events and source; suppressions are one list', async (t) => {
  const world = await startWorld(t);
  const client = sdk(world, world.key, '/compat/postmark');
  const To = 'Ann <ann@there.invalid>';
  const { MessageID } = await client.sendEmail({ ...mail, To, Tag: 'welcome', Metadata: { plan: 'pro' } });
  const later = await client.sendEmail({ ...mail, Cc: 'bob@there.invalid', Subject: 'Second' });
  for (const id of [MessageID, later.MessageID]) await world.when(id, ({ status }) => status === 'delivered');
  const first = await client.getOutboundMessages({ count: 1 });
  t.is(Number(first.TotalCount), 2);
  t.like(first.Messages[0], {
    MessageID: later.MessageID,
    Cc: [{ Email: 'bob@there.invalid', Name: '' }],
    Status: 'Sent',
    TrackOpens: false,
    TrackLinks: 'None',
  });
  for (const filter of [
    { offset: 1 },
    { tag: 'welcome' },
    { subject: 'hi' },
    { recipient: 'ANN@there.invalid', metadata_plan: 'pro', status: 'sent', fromdate: '2001-02-03T04:05:06' },
  ])
    t.deepEqual(
      (await client.getOutboundMessages(filter as never)).Messages.map((one) => one.MessageID),
      [MessageID],
      JSON.stringify(filter),
    );
  t.is((await client.getOutboundMessages({ todate: '2001-02-03' } as never)).Messages.length, 0);
  t.regex(
    (await t.throwsAsync(client.getOutboundMessages({ fromdate: 'soon' } as never)))!.message,
    /^fromdate/,
  );
  t.regex((await t.throwsAsync(client.getOutboundMessages({ offset: 10_000 })))!.message, /offset/);
  const found = await client.getOutboundMessageDetails(MessageID);
  t.like(found, {
    Tag: 'welcome',
    Metadata: { plan: 'pro' },
    To: [{ Email: 'ann@there.invalid', Name: 'Ann' }],
  });
  t.like(found.MessageEvents[0], { Type: 'Delivered', Recipient: 'ann@there.invalid' });
  t.like(found.MessageEvents[0]!.Details, { DestinationServer: 'mx1.invalid' });
  t.regex((await client.getOutboundMessageDump(MessageID)).Body, /^Subject: Hi\r$/m);
  t.like(await t.throwsAsync(client.getOutboundMessageDetails('7')), { statusCode: 404, code: 701 });

  const Suppressions = [{ EmailAddress: 'Dora@there.invalid' }, { EmailAddress: 'nobody' }];
  const made = await client.createSuppressions('outbound', { Suppressions });
  t.deepEqual(
    made.Suppressions.map(({ Status }) => Status),
    ['Suppressed', 'Failed'],
  );
  const kept = (await client.getSuppressions('outbound')).Suppressions;
  t.like(kept, [
    { EmailAddress: 'Dora@there.invalid', SuppressionReason: 'ManualSuppression', Origin: 'Customer' },
  ]);
  for (const [filter, count] of [
    [{ emailAddress: 'dora@there.invalid', fromDate: '2001-02-03' }, 1],
    [{ emailAddress: 'ann@there.invalid' }, 0],
    [{ suppressionReason: 'HardBounce' }, 0],
    [{ origin: 'Customer', toDate: '2001-02-03' }, 0],
  ] as const)
    t.is((await client.getSuppressions('outbound', filter as never)).Suppressions.length, count);
  t.is((await client.deleteSuppressions('outbound', { Suppressions })).Suppressions[0]!.Status, 'Deleted');
  t.is((await client.getSuppressions('outbound')).Suppressions.length, 0);
  t.regex((await t.throwsAsync(client.getSuppressions('news')))!.message, /no message stream/);
  t.like(await client.getServer(), { DeliveryType: 'Live' } as object);
});

async function post(world: World, path: string, body: unknown, key = world.key, headers = {}) {
  const answer = await fetch(`${world.url()}${path}`, {
    method: 'POST',
    headers: { 'x-postmark-server-token': key, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it
  return answer.json() as any;
}

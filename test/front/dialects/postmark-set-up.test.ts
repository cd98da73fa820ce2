/** Postmark's official SDK sets up webhooks and domains, and reads bounces. */
import test from 'ava';
import { AccountClient, type Errors, Models, ServerClient } from 'postmark';
import { startReturns } from '#lab/scenes/returns.ts';
import { worldOfFile } from '#lab/scenes/shared-world.ts';
import { startReceiver } from '#lab/scenes/webhook-receiver.ts';
import { asNewTenant, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { sumUp } from '#mail/record/rows/statistics.ts';

const file = worldOfFile({ settings: { POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true' } });

const options = (world: World) => ({ requestHost: new URL(world.url()).host, useHttps: false });
const sdk = (world: World) => new ServerClient(world.key, options(world));
const mail = { From: 'app@sender.invalid', Subject: 'Hi', TextBody: 'Hi' };
const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => null,
    (error) => error as Errors.PostmarkError,
  );

test('Postmark: bounces are found with their reasons, and their addresses are activated again', async (t) => {
  const world = await startReturns(t);
  const client = sdk(world);
  const gone = await client.sendEmail({ ...mail, To: 'unknown@there.invalid', Tag: 'welcome' });
  await world.when(gone.MessageID, ({ status }) => status === 'bounced');
  const { emailId, path } = await world.delivered();
  await world.comesBack(
    path,
    `Content-Type: multipart/report; report-type=feedback-report; boundary=b

--b
Content-Type: message/feedback-report

Feedback-Type: abuse
User-Agent: test/1
Version: 1
Original-Rcpt-To: <ann@there.invalid>

--b--
`.replaceAll('\n', '\r\n'),
  );
  await world.when(emailId, ({ status }) => status === 'complained');

  const { TotalCount, Bounces } = await client.getBounces();
  t.is(Number(TotalCount), 2);
  t.like(Bounces, [
    { Type: 'SpamComplaint', TypeCode: 100_001, Email: 'ann@there.invalid', MessageID: emailId },
    { Type: 'HardBounce', TypeCode: 1, Email: 'unknown@there.invalid', MessageID: gone.MessageID },
  ]);
  const [complaint, bounce] = Bounces;
  t.like(bounce, { Inactive: true, CanActivate: true, Tag: 'welcome', Subject: 'Hi', DumpAvailable: true });
  t.regex(bounce!.Details, /^550 5\.1\.1/);
  const day = new Date(world.clock.now()).toISOString().slice(0, 10);
  for (const [filter, found] of [
    [{ count: 1 }, complaint],
    [{ offset: 1 }, bounce],
    [{ type: Models.BounceType.HardBounce }, bounce],
    [{ emailFilter: 'KNOWN@', inactive: true }, bounce],
    [{ tag: 'welcome', fromDate: day, toDate: day, messageStream: 'outbound' }, bounce],
    [{ messageID: emailId }, complaint],
    [{ inactive: false }, undefined],
    [{ toDate: '2001-02-03' }, undefined],
    [{ fromDate: '2999-02-03' }, undefined],
  ] as const)
    t.deepEqual(
      (await client.getBounces(filter)).Bounces.slice(0, 1).map(({ ID }) => ID),
      found ? [found.ID] : [],
      JSON.stringify(filter),
    );
  t.like(await failureOf(client.getBounces({ messageStream: 'news' })), { statusCode: 422, code: 300 });
  t.regex((await failureOf(client.getBounces({ count: 501 })))!.message, /^count/);

  const details = await client.getOutboundMessageDetails(gone.MessageID);
  const bounced = details.MessageEvents.find(({ Type }) => Type === 'Bounced')!;
  t.like(bounced.Details, { BounceID: String(bounce!.ID) } as object);
  t.deepEqual(await client.getBounce(bounce!.ID), bounce!);
  t.regex((await client.getBounceDump(bounce!.ID)).Body, /^> RCPT TO:<unknown@there\.invalid>.*\r\n/m);
  t.regex((await client.getBounceDump(bounce!.ID)).Body, /^< 550 5\.1\.1/m);
  t.is((await client.getBounceDump(complaint!.ID)).Body, '');
  for (const id of [0, 999_999, complaint!.ID - 1])
    t.like(await failureOf(client.getBounce(id)), { statusCode: 404, code: 701 });

  while ((await sumUp(world.db)) > 0);
  t.deepEqual(await client.getDeliveryStatistics(), {
    InactiveMails: 2,
    Bounces: [
      { Name: 'All', Type: 'All', TypeCode: 0, Count: 2 },
      { Name: 'Hard bounce', Type: 'HardBounce', TypeCode: 1, Count: 1 },
      { Name: 'Spam complaint', Type: 'SpamComplaint', TypeCode: 100_001, Count: 1 },
    ],
  } as never);
  const activated = await client.activateBounce(bounce!.ID);
  t.like(activated, { Message: 'OK', Bounce: { ID: bounce!.ID, Inactive: false, CanActivate: false } });
  t.deepEqual(
    (await client.getSuppressions('outbound')).Suppressions.map(({ EmailAddress }) => EmailAddress),
    ['ann@there.invalid'],
  );
});

test('Postmark: a webhook that the SDK creates is posted to, with its password', async (t) => {
  const world = await asNewTenant(file());
  const client = sdk(world);
  const receiver = await startReceiver(t, { now: world.clock.now });
  const HttpAuth = { Username: 'ann', Password: 's@fe:%41' };
  const Triggers = { Delivery: { Enabled: true }, Bounce: { Enabled: true, IncludeContent: true } };
  const made = await client.createWebhook({
    Url: receiver.url,
    HttpAuth,
    Triggers,
    MessageStream: 'outbound',
  });
  t.true(Number.isInteger(made.ID) && made.ID < 2 ** 31);
  t.like(made, { MessageStream: 'outbound', HttpAuth: null });
  const enabled = ({ Triggers: all }: typeof made) =>
    Object.entries(all).flatMap(([name, { Enabled }]) => (Enabled ? [name] : []));
  t.deepEqual(enabled(made), ['Delivery', 'Bounce']);
  t.false(made.Triggers.Bounce.IncludeContent);

  const { MessageID } = await client.sendEmail({ ...mail, To: 'ann@there.invalid' });
  const post = await until(() => receiver.requests[0]);
  t.like(post.body, { RecordType: 'Delivery', MessageID });
  t.is(post.headers.authorization, `Basic ${btoa('ann:s@fe:%41')}`);

  t.deepEqual(await client.getWebhook(made.ID), made);
  t.deepEqual((await client.getWebhooks({ messageStream: 'outbound' })).Webhooks, [made]);
  const edited = await client.editWebhook(made.ID, {
    Url: made.Url,
    Triggers: { Delivery: { Enabled: false }, Open: { Enabled: true } },
  });
  t.deepEqual(enabled(edited), ['Open', 'Bounce']);
  t.deepEqual(await client.getWebhook(made.ID), edited);
  const refused: [Promise<unknown>, RegExp][] = [
    [client.editWebhook(made.ID, { Url: 'https://other.example/' }), /delete this one/],
    [client.editWebhook(made.ID, { HttpAuth }), /delete this one/],
    [client.createWebhook({ Url: 'gopher://x/', Triggers }), /^Url: /],
    [client.createWebhook({ Url: receiver.url }), /^Triggers: enable/],
    [client.createWebhook({ Url: receiver.url, Triggers, MessageStream: 'news' }), /no message stream/],
    [
      client.createWebhook({ Url: receiver.url, Triggers, HttpHeaders: [{ Name: 'X-A', Value: 'b' }] }),
      /HttpHeaders/,
    ],
  ];
  for (const [call, message] of refused) {
    const error = await failureOf(call);
    t.like(error, { statusCode: 422, code: 300 });
    t.regex(error!.message, message);
  }
  const half = { Url: receiver.url, Triggers, HttpAuth: { Username: 'ann\ud800', Password: '\ud800' } };
  await client.deleteWebhook((await client.createWebhook(half)).ID);
  // Endpoints with another format are not Postmark's.
  await world.call('POST', '/api/public/webhooks', { body: JSON.stringify({ url: receiver.url }) });
  t.is((await client.getWebhooks()).Webhooks.length, 1);
  t.like(await client.deleteWebhook(made.ID), { ErrorCode: 0 });
  t.like(await failureOf(client.getWebhook(made.ID)), { statusCode: 404, code: 701 });
});

test('Postmark: domains are added, verified, given a new key and deleted by the SDK', async (t) => {
  const world = await asNewTenant(file());
  const client = new AccountClient(world.key, options(world));
  const made = await client.createDomain({ Name: 'Münster.example' });
  const Name = 'xn--mnster-3ya.example';
  t.like(made, { Name, DKIMVerified: false, DKIMUpdateStatus: 'Pending', DKIMHost: '' });
  t.like(made, {
    ReturnPathDomain: `bounces.${Name}`,
    ReturnPathDomainCNAMEValue: 'postern.invalid',
    ReturnPathDomainVerified: false,
    SPFVerified: false,
  });
  t.regex(made.DKIMPendingTextValue, /^v=DKIM1; k=rsa; p=/);
  t.like(await client.verifyDomainDKIM(made.ID), { DKIMVerified: false });

  world.dns.set({
    [made.DKIMPendingHost]: { TXT: [made.DKIMPendingTextValue] },
    [made.ReturnPathDomain]: { CNAME: [made.ReturnPathDomainCNAMEValue] },
  });
  t.like(await client.verifyDomainReturnPath(made.ID), { ReturnPathDomainVerified: true });
  t.like(await client.verifyDomainSPF(made.ID), { SPFVerified: true });
  const verified = await client.getDomain(made.ID);
  t.like(verified, {
    DKIMVerified: true,
    DKIMUpdateStatus: 'Verified',
    DKIMHost: made.DKIMPendingHost,
    DKIMTextValue: made.DKIMPendingTextValue,
    DKIMPendingHost: '',
    ReturnPathDomainVerified: true,
    SPFVerified: true,
  });
  world.dns.set({ [made.DKIMPendingHost]: null });
  const missing = { DKIMVerified: true, DKIMPendingHost: made.DKIMPendingHost, DKIMUpdateStatus: 'Pending' };
  t.like(await client.verifyDomainDKIM(made.ID), missing);
  t.like(await client.getDomain(made.ID), { DKIMVerified: true, DKIMUpdateStatus: 'Verified' });
  world.dns.set({ [made.DKIMPendingHost]: { TXT: [made.DKIMPendingTextValue] } });
  const rotated = await client.rotateDomainDKIM(made.ID);
  t.like(rotated, { DKIMHost: verified.DKIMHost, DKIMUpdateStatus: 'Pending' });
  t.not((rotated as typeof verified).DKIMPendingHost, '');

  const { TotalCount, Domains } = await client.getDomains({ count: 1, offset: 1 });
  t.is(Number(TotalCount), 2);
  t.like(Domains[0], { ID: made.ID, Name, DKIMVerified: true, ReturnPathDomainVerified: true });
  t.like(await client.editDomain(made.ID, { ReturnPathDomain: `bounces.${Name}` }), { ID: made.ID });
  const other = await failureOf(client.editDomain(made.ID, { ReturnPathDomain: 'pm.example.com' }));
  t.regex(other!.message, /can only be bounces\./);
  t.like(await failureOf(client.createDomain({ Name })), { statusCode: 422, code: 300 });
  t.regex((await failureOf(client.createDomain({ Name: 'nowhere' })))!.message, /^Name/);
  t.like(await client.deleteDomain(made.ID), { ErrorCode: 0 });
  t.like(await failureOf(client.getDomain(made.ID)), { statusCode: 404, code: 701 });
});

test('Postmark: what Postern does not have is answered 404, with a sentence', async (t) => {
  const world = await asNewTenant(file());
  const client = sdk(world);
  const account = new AccountClient(world.key, options(world));
  const calls = [
    client.getTemplates(),
    client.getTemplate('welcome'),
    client.createTemplate({ Name: 'x', Subject: 'x', TextBody: 'x' }),
    client.getOutboundOverview(),
    client.getMessageOpens(),
    client.getInboundRuleTriggers(),
    account.getServers(),
    account.getSenderSignatures(),
  ];
  for (const call of calls) {
    const error = await failureOf(call);
    t.like(error, { statusCode: 404, code: 701 });
    t.regex(error!.message, /^Postern does not have [A-Z]+ \//);
  }
  const method = await failureOf(client.editServer({ Name: 'x' }));
  t.like(method, { statusCode: 405 }, 'the server can be read, and not changed');
});

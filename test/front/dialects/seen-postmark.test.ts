/** What Postmark's SDK (postmark.js), Ruby's gem, Anymail and webhooks of opens read in our answers. */
import test from 'ava';
import { Errors, type Message, ServerClient } from 'postmark';
import { suppressAddress } from '#accounts/suppression-list.ts';
import { worldOfFile } from '#lab/scenes/shared-world.ts';
import { startReceiver } from '#lab/scenes/webhook-receiver.ts';
import { asNewTenant, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const file = worldOfFile({ settings: { POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true' } });

const sdk = (world: World) =>
  new ServerClient(world.key, { requestHost: new URL(world.url()).host, useHttps: false });
const mail: Message = { From: 'app@sender.invalid', To: 'ann@there.invalid', Subject: 'Hi', TextBody: 'Hi' };

/** As the SDKs of Node, Ruby and Python, and Anymail take the addresses out of the sentence. */
function readers(message: string): string[][] {
  const found = [/Found inactive addresses: (.+?)\. Inactive/, /Found inactive addresses:\s*(.+?)\.(?:\s|$)/];
  const anymail = /inactive addresses:\s*(.*)\.\s*Inactive recipients/;
  return [
    Errors.InactiveRecipientsError.parseInactiveRecipients(message),
    ...[...found, anymail].map((one) => (one.exec(message)?.[1] ?? '').split(', ')),
  ];
}

test.serial(
  'Postmark: inactive recipients are read out of the answer by every SDK, in a batch, too',
  async (t) => {
    const world = await asNewTenant(file());
    const client = sdk(world);
    const gone = ['dora@there.invalid', 'emil.e@sub.there.invalid', "o'hara+x@there.invalid"];
    const change = { db: world.db, orgId: world.orgId, now: world.clock.now() };
    for (const address of gone) await suppressAddress(change, address);
    const isRead = (message: string, addresses: string[]) => {
      for (const read of readers(message)) t.deepEqual(read, addresses, message);
    };
    for (const some of [gone, gone.slice(0, 1), gone.slice(1)]) {
      const To = `${mail.To}, ${some.join(', ')}`;
      const sent = await client.sendEmail({ ...mail, To });
      t.is(sent.ErrorCode, 0);
      t.regex(sent.Message, /^Message OK/);
      isRead(sent.Message, some);
      const copies = await client.sendEmail({ ...mail, Cc: some[0]!, Bcc: some.slice(1).join(', ') });
      isRead(copies.Message, some);
      const refused = await t.throwsAsync(client.sendEmail({ ...mail, To: some.join(', ') }), {
        instanceOf: Errors.InactiveRecipientsError,
      });
      t.deepEqual((refused as Errors.InactiveRecipientsError).recipients, some);
      isRead(refused!.message, some);
      const [partly, all, whole] = await client.sendEmailBatch([
        { ...mail, To },
        { ...mail, To: some.join(', ') },
        mail,
      ]);
      t.deepEqual([partly!.ErrorCode, all!.ErrorCode, whole!.ErrorCode], [0, 406, 0]);
      isRead(partly!.Message, some);
      isRead(all!.Message, some);
      t.is(whole!.Message, 'OK');
    }
  },
);

test.serial('Postmark: the first open of each recipient is said to be that, and no later one', async (t) => {
  const world = await asNewTenant(file());
  const client = sdk(world);
  const receiver = await startReceiver(t, { now: world.clock.now });
  await client.createWebhook({ Url: receiver.url, Triggers: { Open: { Enabled: true } } });
  const To = 'ann@there.invalid, bob@there.invalid';
  const HtmlBody = '<p>Hi</p>';
  const { MessageID } = await client.sendEmail({ ...mail, To, HtmlBody, TrackOpens: true });
  await world.when(MessageID, ({ status }) => status === 'delivered');
  const pixels = world.mx[0]!.messages.flatMap(({ raw }) => {
    const text = raw.toString('latin1').replaceAll('=\r\n', '').replaceAll('=3D', '=');
    return /<img src="([^"]+\/t\/o\/[^"]+)"/.exec(text)?.[1] ?? [];
  });
  t.is(pixels.length, 2);
  const thunderbird = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Thunderbird/140.0';
  const opens: [pixel: string, agent: string][] = [
    [pixels[0]!, 'Mozilla/5.0'],
    [pixels[0]!, thunderbird],
    [pixels[0]!, thunderbird],
    [pixels[1]!, thunderbird],
    [pixels[1]!, thunderbird],
  ];
  for (const [n, [pixel, agent]] of opens.entries()) {
    await world.clock.advance(60_000);
    t.is((await fetch(pixel, { headers: { 'user-agent': agent } })).status, 200);
    await until(() => receiver.requests.length > n);
  }
  t.deepEqual(
    receiver.requests.map(({ body }) => (body as { FirstOpen: boolean }).FirstOpen),
    [false, true, false, true, false],
    'a program that fetches everything opens nothing',
  );
});

test.serial('Postmark: the details of a message name its attachments', async (t) => {
  const world = await asNewTenant(file());
  const client = sdk(world);
  const attachment = (Name: string, ContentID: string | null = null) => ({
    Name,
    Content: Buffer.from('x').toString('base64'),
    ContentType: 'application/octet-stream',
    ContentID,
  });
  const Attachments = [
    attachment('größe.csv'),
    attachment('invoice 4711.pdf'),
    attachment('logo.png', 'cid:logo'),
  ];
  const HtmlBody = '<img src="cid:logo">';
  const { MessageID } = await client.sendEmail({ ...mail, HtmlBody, Attachments });
  const { Attachments: named } = await client.getOutboundMessageDetails(MessageID);
  t.deepEqual((named as unknown as string[]).toSorted(), ['größe.csv', 'invoice 4711.pdf', 'logo.png']);
  const without = await client.sendEmail(mail);
  t.deepEqual((await client.getOutboundMessageDetails(without.MessageID)).Attachments, []);
});

test.serial('Postmark: null is as good as nothing in each optional member', async (t) => {
  const world = await asNewTenant(file());
  const names = [
    'Cc',
    'Bcc',
    'ReplyTo',
    'Tag',
    'Headers',
    'Metadata',
    'Attachments',
    'HtmlBody',
    'TrackOpens',
  ];
  const members = Object.fromEntries([...names, 'TrackLinks', 'MessageStream'].map((name) => [name, null]));
  const answer = await fetch(`${world.url()}/email`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-postmark-server-token': world.key },
    body: JSON.stringify({ ...mail, ...members }),
  });
  t.like(await answer.json(), { ErrorCode: 0, Message: 'OK' });
});

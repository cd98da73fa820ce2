/** Answers to calls for many emails that are wrong in everything stay small, and still say of each email what is wrong first. */
import test from 'ava';
import { ask } from '#lab/ask.ts';
import { worldOfFile } from '#lab/scenes/shared-world.ts';
import { asNewTenant } from '#lab/scenes/world.ts';

const shared = worldOfFile();
const maxAnswer = 100_000;

/** Characters of four and of six bytes of JSON. */
for (const [kind, character] of Object.entries({ emoji: '\u{1F600}', control: '\u0001' })) {
  test(`the answer to a batch of wrong emails with many faults each is small: ${kind}`, async (t) => {
    const world = await asNewTenant(shared());
    const post = (path: string, document: unknown, headers: Record<string, string>) =>
      ask(world.url() + path, {
        method: 'POST',
        body: [JSON.stringify(document)],
        headers: { 'content-type': 'application/json', ...headers },
      });
    const bearer = { authorization: `Bearer ${world.key}` };
    const long = character.repeat(600);
    const wrong = {
      headers: { [long]: long },
      from: 1,
      to: Array(10).fill(`nobody ${long}`),
      cc: [1, 2],
      subject: 3,
      text: 4,
      html: 5,
      tags: { [long]: 1, b: [] },
      [long]: 1,
    };
    const first = {
      headers: { [long]: long },
      from: long,
      to: 'ann@there.invalid',
      subject: 'Hi',
      text: 'Hi',
    };
    for (const element of [wrong, first, { ...first, headers: {} }]) {
      const own = await post('/api/public/email/batch', Array(100).fill(element), bearer);
      t.is(own.status, 200);
      t.true(own.bytes < maxAnswer, String(own.bytes));
    }
    const alone = await post('/api/public/email/batch', [wrong], bearer);
    t.true(JSON.parse(alone.text).results[0].body.issues.length > 10, 'all of them, if there is room');

    const token = { 'x-postmark-server-token': world.key };
    const bad = {
      From: long,
      To: Array(50)
        .fill(`nobody ${long.slice(0, 20)}`)
        .join(),
      Subject: 'a\nb',
      TextBody: 'x',
      Headers: [{ Name: long, Value: 1 }],
    };
    const postmark = await post('/compat/postmark/email/batch', Array(500).fill(bad), token);
    t.is(postmark.status, 200);
    t.true(postmark.bytes < maxAnswer, String(postmark.bytes));

    const permissive = { ...bearer, 'x-batch-validation': 'permissive' };
    const resend = await post('/compat/resend/emails/batch', Array(100).fill(wrong), permissive);
    t.is(resend.status, 200);
    t.true(resend.bytes < maxAnswer, String(resend.bytes));
  });

  test(`the answer to a call of Mailgun with 1,000 wrong recipients is small: ${kind}`, async (t) => {
    const world = await asNewTenant(shared());
    const long = character.repeat(600);
    const wrong = Array.from({ length: 1_000 }, (_, n) => `nobody ${n} ${character.repeat(40)}`);
    const right = Array.from({ length: 1_000 }, (_, n) => `a${n}@there.invalid`);
    const send = (to: string[], fields: Record<string, string>) => {
      const mail = { from: 'app@sender.invalid', subject: 'Hi', text: 'Hi', ...fields };
      const list = to.map((one): [string, string] => ['to', one]);
      const body = new URLSearchParams([...list, ...Object.entries(mail)]).toString();
      const authorization = `Basic ${Buffer.from(`api:${world.key}`).toString('base64')}`;
      const headers = { authorization, 'content-type': 'application/x-www-form-urlencoded' };
      const path = '/compat/mailgun/v3/sender.invalid/messages';
      return ask(world.url() + path, { method: 'POST', body: [body], headers });
    };
    const variables = (value: unknown) =>
      JSON.stringify(Object.fromEntries(right.map((address) => [address, value])));
    const calls = [
      await send(wrong, {}),
      await send(wrong, { 'recipient-variables': '{}', [`h:${character}`]: long }),
      await send(right, { from: `${long}@` }),
      await send(right, { 'h:X-A': '%recipient.a%', 'recipient-variables': variables({ a: `\r\n${long}` }) }),
      await send(right, { 'recipient-variables': variables(long) }),
      await send(right, {
        subject: '%recipient.a%',
        'recipient-variables': variables({ a: long.repeat(2) }),
      }),
    ];
    for (const [index, { status, bytes, text }] of calls.entries()) {
      t.is(status, 400, `${index}: ${text.slice(0, 300)}`);
      t.true(bytes < maxAnswer, `${index}: ${bytes}`);
    }
    t.is((await world.db('emails').where({ org_id: world.orgId })).length, 0, 'nobody gets one');
  });
}

/** Answers to batches that are wrong in everything stay small, and still say of each email what is wrong first. */
import test from 'ava';
import { ask } from '../lab/ask.ts';
import { startWorld } from '../lab/scenes/world.ts';

const maxAnswer = 100_000;

test('the answer to a batch of wrong emails with many faults each is small', async (t) => {
  const world = await startWorld(t);
  const post = (path: string, document: unknown, headers: Record<string, string>) =>
    ask(world.url() + path, {
      method: 'POST',
      body: [JSON.stringify(document)],
      headers: { 'content-type': 'application/json', ...headers },
    });
  const bearer = { authorization: `Bearer ${world.key}` };
  const wrong = {
    from: 1,
    to: Array(10).fill('nobody'),
    cc: [1, 2],
    subject: 3,
    text: 4,
    html: 5,
    tags: { a: 1, b: [] },
  };
  const own = await post('/api/public/email/batch', Array(100).fill(wrong), bearer);
  t.is(own.status, 200);
  t.true(own.bytes < maxAnswer, String(own.bytes));
  t.regex(own.text, /"issues":\[\{"code":/);
  const alone = await post('/api/public/email/batch', [wrong], bearer);
  t.true(JSON.parse(alone.text).results[0].body.issues.length > 10, 'all of them, if there is room');

  const token = { 'x-postmark-server-token': world.key };
  const bad = {
    From: 'x',
    To: Array(50).fill('nobody').join(),
    Subject: 'a\nb',
    TextBody: 'x',
    Headers: [{ Name: 'a b', Value: 1 }],
  };
  const postmark = await post('/compat/postmark/email/batch', Array(500).fill(bad), token);
  t.is(postmark.status, 200);
  t.true(postmark.bytes < maxAnswer, String(postmark.bytes));

  const permissive = { ...bearer, 'x-batch-validation': 'permissive' };
  const resend = await post('/compat/resend/emails/batch', Array(100).fill(wrong), permissive);
  t.true(resend.bytes < maxAnswer, String(resend.bytes));
});

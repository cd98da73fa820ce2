/**
 * A pause by complaints as they come, over sockets: two reports about five hundred delivered mails hold the key's mail. Each way to
 * send says so at once, `doctor` names the pause, and the button of the dashboard lets the mail go.
 */
import test from 'ava';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { freePort } from '#lab/load/ports.ts';
import { connectSmtp, plain } from '#lab/mx/smtp-client.ts';
import { goldenMail, startReturns } from '#lab/scenes/returns.ts';
import { submit } from '#lab/scenes/submission.ts';
import { pausesOf } from '#mail/record/auto-pause/rows/auto-pauses.ts';
import { checkAutoPauses } from '#operate/doctor/checks/pauses-in-force.ts';

test('complaints hold a key: a batch, other APIs and SMTP say so, and the dashboard releases it', async (t) => {
  const port = await freePort('127.0.0.1');
  const settings = { POSTERN_AUTO_PAUSE: 'hold', POSTERN_SUBMISSION_TLS_PORT: String(port) };
  const world = await startReturns(t, { settings });
  const { db, orgId, clock, key } = world;
  const browser = createBrowser(world);
  await setUp(browser, world);

  const ids: string[] = [];
  for (let n = 0; n < 50; n += 1) {
    const to = Array.from({ length: 10 }, (_, at) => `p${n}-${at}@there.invalid`);
    ids.push((await world.send({ to, subject: `News ${n}` })).body.emailId);
  }
  const isSent = async () => !(await db('deliveries').whereIn('status', ['queued', 'sending']).first());
  await clock.passUntil(isSent, { step: 10 });
  const complain = async (emailId: string) => {
    const path = await world.returnPath(emailId);
    await world.comesBack('complaints@postern.invalid', goldenMail('arf-yahoo', path), 'fbl@mail.example');
  };
  await complain(ids[0]!);
  await clock.advance('1m');
  t.deepEqual(await pausesOf(db, orgId), [], 'one of 500 is below 0.3 %');
  await complain(ids[1]!);
  const [pause] = await clock.passUntil(
    async () => {
      const found = await pausesOf(db, orgId);
      return found.length > 0 && found;
    },
    { step: '1s' },
  );
  t.like(pause, { kind: 'key', rule: 'complaints', state: 'held', figures: { count: 2, of: 500 } });
  t.deepEqual(pause!.mails.map(({ emailId }) => emailId).sort(), ids.slice(0, 2).sort());

  const email = { from: 'app@sender.invalid', to: 'late@there.invalid', text: 'Hi' };
  const bodies = [
    { ...email, subject: 'one' },
    { ...email, subject: 'two' },
  ];
  const batch = await world.call('POST', '/api/public/email/batch', {
    body: JSON.stringify(bodies),
  });
  t.is(batch.status, 200);
  t.is(batch.headers.get('x-postern-held'), pause!.id);
  const resend = await world.call('POST', '/emails', {
    body: JSON.stringify({ ...email, subject: 'three' }),
  });
  t.is(resend.headers.get('x-postern-held'), pause!.id);
  const talk = await connectSmtp(port, { host: world.config.smtpHost!, tls: true });
  await talk.says('EHLO client.invalid\r\n', '250');
  await talk.says(`AUTH PLAIN ${plain(key)}\r\n`, '235');
  const reply = await submit(
    talk,
    ['late@there.invalid'],
    ['From: app@sender.invalid', 'Subject: four', '', 'Hi'],
  );
  t.true(reply.includes(`; held by the pause ${pause!.id}`), reply);
  talk.close();

  const { verdict, found } = await checkAutoPauses(async () => db);
  t.is(verdict, 'warning');
  t.is(found, 'held by a rule: the mail of key test of Tenant');

  await browser.get(`/dashboard/o/${orgId}/pauses`);
  t.regex(browser.page().text, /Key test/);
  await browser.submit(`/pauses/${pause!.id}/release`);
  t.regex(browser.page().text, /The mail is sent again within seconds/);
  const late = () => world.mx[0]!.messages.filter(({ to }) => to.includes('late@there.invalid')).length;
  const isDone = async () => {
    const rows = await db('deliveries').where({ recipient: 'late@there.invalid' }).pluck('status');
    return rows.length === 4 && rows.every((status) => status === 'delivered');
  };
  await clock.passUntil(isDone, { step: '1s' });
  await clock.advance('5m');
  t.is(late(), 4, 'each once');
  t.is((await pausesOf(db, orgId))[0]!.state, 'released', 'not again for the same complaints');
});

/**
 * Programs without a queue send several mails in a row and drop what is refused (django/django#33442, keycloak/keycloak#11092,
 * prometheus/alertmanager#2011): over SMTP the limit of requests a second is waited for.
 */
import test from 'ava';
import { setLimits } from '#accounts/rows/organizations.ts';
import { journeyKinds, oneKind } from '#lab/database/databases.ts';
import { connectSmtp, plain } from '#lab/mx/smtp-client.ts';
import {
  emailIdOf,
  loggedIn,
  messageTo,
  type SubmissionWorld,
  startSubmission,
  submissionWorlds,
  submit,
  type Tenant,
  tenantOf,
  transportOf,
} from '#lab/scenes/submission.ts';
import { until } from '#lab/until.ts';

const worlds = submissionWorlds(journeyKinds);

const mailOf = (subject: string) => ['From: app@sender.invalid', `Subject: ${subject}`, '', 'Hi'];

async function limited(world: SubmissionWorld, limits = {}): Promise<Tenant> {
  const tenant = await tenantOf(world);
  const all = { requestsPerSecond: 2, requestsPerDay: null, emailsPerDay: null, ...limits };
  await setLimits(world.db, tenant.orgId, all);
  return tenant;
}

for (const database of journeyKinds) {
  test.serial(`${database}: six mails in a row are sent, two a second`, async (t) => {
    const world = worlds[database];
    const tenant = await limited(world);
    const talk = await loggedIn(tenant);
    const ids: string[] = [];
    const started = world.clock.now();
    const sending = (async () => {
      for (let n = 0; n < 6; n++)
        ids.push(emailIdOf(await submit(talk, [`six${n}@there.invalid`], mailOf('x'))));
    })();
    await world.clock.passUntil(() => ids.length === 6, { step: 200 });
    await sending;
    t.is(new Set(ids).size, 6);
    t.true(world.clock.now() - started >= 2000);
    for (let n = 0; n < 6; n++) await messageTo(world, `six${n}@there.invalid`);
    const [usage] = await world.db('daily_usage').where({ org_id: tenant.orgId }).select('requests');
    t.is(usage.requests, 6, 'waiting is not counted');
  });
}

test.serial('nodemailer with a pool, and twelve mails at once', async (t) => {
  const world = worlds[oneKind];
  const tenant = await limited(world);
  let done = 0;
  const transport = transportOf(tenant);
  const all = Array.from({ length: 12 }, async (_, n) => {
    await transport.sendMail({ from: 'app@sender.invalid', to: `pool${n}@there.invalid`, text: 'Hi' });
    done += 1;
  });
  await world.clock.passUntil(() => done === 12, { step: 200 });
  await Promise.all(all);
  for (let n = 0; n < 12; n++) await messageTo(world, `pool${n}@there.invalid`);
  t.pass();
});

test.serial(
  'thirty connections of one organization delay no other, and one that hangs up is forgotten',
  async (t) => {
    const world = worlds[oneKind];
    const tenant = await limited(world);
    const waiting = await Promise.all(Array.from({ length: 30 }, () => loggedIn(tenant)));
    for (const talk of waiting) talk.write('MAIL FROM:<>\r\n');
    const replies = () => waiting.filter(({ received }) => received.includes('250 2.1.0')).length;
    await until(() => replies() === 2);
    const other = await limited(world);
    await submit(await loggedIn(other), ['other@there.invalid'], mailOf('x'));
    t.is(replies(), 2);
    const gone = waiting.filter(({ received }) => !received.includes('250 2.1.0')).slice(0, 26);
    for (const talk of gone) talk.close();
    await world.clock.passUntil(() => replies() === 4, { step: 200 });
    for (const talk of waiting) talk.close();
  },
);

test.serial('the day’s requests are not waited for', async (t) => {
  const world = worlds[oneKind];
  const tenant = await limited(world, { requestsPerDay: 1 });
  const talk = await loggedIn(tenant);
  await submit(talk, ['day@there.invalid'], mailOf('x'));
  t.regex(await talk.says('MAIL FROM:<>\r\n', '451 4.7.1'), /1 request a day.* Retry in \d+ s/);
});

test.serial('what would wait for more than a minute is 451 at once, with the seconds', async (t) => {
  const world = await startSubmission(t, { settings: { POSTERN_SMTP_PER_CLIENT: '100' } });
  const tenant = await limited(world, { requestsPerSecond: 1 });
  const open = async () => {
    const talk = await connectSmtp(world.ports.implicit, { tls: true });
    await talk.says('EHLO x\r\n', '250');
    await talk.says(`AUTH PLAIN ${plain(tenant.key)}\r\n`, '235');
    talk.write('MAIL FROM:<>\r\n');
    return talk;
  };
  const all = await Promise.all(Array.from({ length: 62 }, open));
  const refused = await until(() => all.find(({ received }) => /^451 /m.test(received)));
  t.regex(refused.received, /451 4\.7\.1 RATE_LIMIT_EXCEEDED: .* 60 other mails wait .* Retry in 60 s\./);
  for (const talk of all) talk.close();
});

test.serial('a stop ends the waits', async (t) => {
  const world = await startSubmission(t);
  const tenant = await limited(world);
  const talk = await loggedIn(tenant);
  for (let n = 0; n < 2; n++) await submit(talk, ['stop@there.invalid'], mailOf(`${n}`));
  talk.write('MAIL FROM:<>\r\n');
  await until(async () => world.clock.pending.length > 0);
  await world.stop();
  t.regex(await talk.over(), /^421 4\.3\.2 The server is shutting down/);
});

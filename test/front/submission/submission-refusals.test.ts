/** What is refused over SMTP, by the API's rules: its code in the text, the SMTP codes that fit, nothing left behind. */
import test from 'ava';
import { revokeKey } from '#accounts/rows/keys.ts';
import { setLimits } from '#accounts/rows/organizations.ts';
import { addSuppression } from '#accounts/rows/suppressions.ts';
import { kinds, oneKind } from '#lab/database/databases.ts';
import { connectSmtp, plain } from '#lab/mx/smtp-client.ts';
import {
  delivered,
  emailIdOf,
  loggedIn,
  startSubmission,
  submissionWorlds,
  submit,
  type Tenant,
  tenantOf,
  transportOf,
  withKey,
} from '#lab/scenes/submission.ts';
import { table } from '#lab/table.ts';
import { until } from '#lab/until.ts';
import { compareKey } from '#platform/values/address.ts';

const worlds = submissionWorlds(kinds);

const to = ['ann@there.invalid'];
const from = 'From: App <app@sender.invalid>';
const good = [from, 'Subject: Hi', '', 'Hi'];

async function suppress({ world, orgId }: Tenant, ...addresses: string[]): Promise<void> {
  for (const address of addresses) {
    const suppression = { orgId, address, addressKey: compareKey(address), reason: 'test' };
    await addSuppression(world.db, suppression, Date.now());
  }
}

const limited = { requestsPerSecond: null, requestsPerDay: null, emailsPerDay: null };

test("a sender is refused whose domain is another organization's, not verified, or not allowed to the key", async (t) => {
  const world = worlds[oneKind];
  const tenant = await tenantOf(world);
  const other = [from.replace('sender', 'stranger'), ...good.slice(1)];
  const text = (reply: string) => reply.trimEnd();
  t.regex(
    await submit(await loggedIn(tenant), to, other, '550'),
    /^550 5\.7\.1 DOMAIN_NOT_FOUND: The domain stranger\.invalid is not registered in this organization\./,
  );
  const bound = await withKey(tenant, ['email:send', 'domain_scope:other.invalid']);
  t.is(
    text(await submit(await loggedIn(bound), to, good, '550')),
    '550 5.7.1 DOMAIN_NOT_ALLOWED: This API key cannot send from sender.invalid. It can send from other.invalid.',
  );
  const pending = await tenantOf(world);
  await world.db('domains').where({ org_id: pending.orgId }).update({ status: 'pending' });
  t.regex(
    await submit(await loggedIn(pending), to, good, '550'),
    /^550 5\.7\.1 DOMAIN_NOT_VERIFIED: The domain sender\.invalid is not verified yet/,
  );
  const reader = await loggedIn(await withKey(tenant, ['email:read']));
  t.is(
    text(await reader.says('MAIL FROM:<a@b.invalid>\r\n', '550')),
    '550 5.7.1 FORBIDDEN: The API key lacks the scope email:send.',
  );
  t.is((await world.db('emails').whereIn('org_id', [tenant.orgId, pending.orgId])).length, 0);
});

test('suppressed recipients are skipped and named; all of them are a refusal', async (t) => {
  const world = worlds[oneKind];
  const tenant = await tenantOf(world);
  await suppress(tenant, 'gone@there.invalid', 'left@there.invalid');
  const talk = await loggedIn(tenant);
  const reply = await submit(talk, ['gone@there.invalid', ...to], good);
  t.regex(reply, /; skipped: gone@there\.invalid \(suppressed\)\r\n$/);
  const email = await delivered(tenant, emailIdOf(reply));
  t.is(email.recipients[0].status, 'suppressed');
  t.is(
    await submit(talk, ['gone@there.invalid', 'left@there.invalid'], good, '550'),
    '550 5.7.1 ALL_RECIPIENTS_SUPPRESSED: Every recipient is on the suppression list.\r\n',
  );
});

test('credits are spent by recipient, and where they do not last for all, nothing is sent', async (t) => {
  const tenant = await tenantOf(worlds[oneKind], { quota: 1 });
  const talk = await loggedIn(tenant);
  t.is(
    await submit(talk, [...to, 'bob@there.invalid'], good, '550'),
    '550 5.7.1 INSUFFICIENT_CREDITS: The email needs 2 credits, and the balance is 1. Nothing was sent.\r\n',
  );
  await submit(talk, to, good);
  t.is(
    await submit(talk, ['joe@there.invalid'], good, '550'),
    '550 5.7.1 INSUFFICIENT_CREDITS: Neither the quota nor the wallet has credits left.\r\n',
  );
});

// Alone, for it turns the clock of all.
test.serial('beyond the day’s capacity it is 451 with the seconds', async (t) => {
  const world = worlds[oneKind];
  const tenant = await tenantOf(world);
  await setLimits(world.db, tenant.orgId, { ...limited, requestsPerSecond: 2, emailsPerDay: 3 });
  await world.clock.advance('5s');
  const talk = await loggedIn(tenant);
  await submit(talk, to, good);
  await submit(talk, ['bob@there.invalid'], good);
  await world.clock.advance('1s');
  const reply = await submit(talk, ['c@there.invalid', 'd@there.invalid'], good, '451');
  t.regex(reply, /^451 4\.7\.1 RATE_LIMIT_EXCEEDED: .* 3 recipients a day.* Retry in \d+ s\.\r\n$/);
  const [usage] = await world.db('daily_usage').where({ org_id: tenant.orgId }).select('requests', 'emails');
  t.deepEqual({ ...usage }, { requests: 2, emails: 2 });
});

test('an error of ours is 451, and nothing is charged', async (t) => {
  const tenant = await tenantOf(worlds[oneKind], { quota: 10 });
  const { db } = tenant.world;
  await db('domains').where({ org_id: tenant.orgId }).update({ dkim_private_key: 'v1.AAAA.AAAA.AAAA' });
  const reply = await submit(await loggedIn(tenant), to, good, '451');
  t.regex(reply, /^451 4\.3\.0 SEND_FAILED: .* Nothing was charged\. Try again\.\r\n$/);
  t.is((await db('organizations').where({ id: tenant.orgId }).first('quota_used')).quota_used, 0);
});

test('a key that is revoked sends no more, in the same session', async (t) => {
  const world = worlds[oneKind];
  const tenant = await tenantOf(world);
  const talk = await loggedIn(tenant);
  await submit(talk, to, good);
  const { id } = await world.db('api_keys').where({ org_id: tenant.orgId }).first('id');
  await revokeKey(world.db, id, Date.now());
  const refused = await until(async () => {
    talk.write('RSET\r\n');
    await talk.reply('250');
    talk.write('MAIL FROM:<a@b.invalid>\r\n');
    return (await talk.reply('')).startsWith('535 5.7.8 UNAUTHORIZED: ');
  });
  t.true(refused);
});

test.serial(
  'a wrong password is 535; the eleventh in a minute from an address ends the connection, the right one passes',
  async (t) => {
    const world = worlds.sqlite;
    const login = async (key: string, expected: string) => {
      const talk = await connectSmtp(world.ports.implicit, { tls: true, from: '127.0.0.9' });
      await talk.says('EHLO x\r\n', '250');
      const reply = await talk.says(`AUTH PLAIN ${plain(key)}\r\n`, expected);
      if (expected === '421') await talk.over();
      talk.close();
      return reply;
    };
    const text =
      '535 5.7.8 UNAUTHORIZED: The password is not a valid API key, or the key has been revoked.\r\n';
    for (let n = 0; n < 10; n++) t.is(await login('em_wrong', '535'), text);
    t.regex(await login('em_wrong', '421'), /^421 4\.7\.0 RATE_LIMIT_EXCEEDED: .* Retry in 60 s\.\r\n$/);
    await login(world.key, '235');
    // As it is read from a secret's file (authelia/authelia#5114).
    await login(`${world.key}\r\n`, '235');
    await world.clock.advance('1m');
    await login('em_wrong', '535');
  },
);

test('nodemailer’s client reads the refusal', async (t) => {
  const tenant = await tenantOf(worlds.sqlite);
  const wrong = await t.throwsAsync(transportOf({ ...tenant, key: 'em_wrong_wrong_wrong_wrong' }).verify());
  t.regex(wrong!.message, /535 5\.7\.8 UNAUTHORIZED: /);
  const mail = { from: 'x@stranger.invalid', to, subject: 'Hi', text: 'Hi' };
  const refused = await t.throwsAsync(transportOf(tenant).sendMail(mail));
  t.regex(refused!.message, /550 5\.7\.1 DOMAIN_NOT_FOUND: /);
});

test('without TLS there is no login, unless clear text is allowed on loopback; without a login there is no mail', async (t) => {
  const world = worlds.sqlite;
  const talk = await connectSmtp(world.ports.starttls);
  const offered = await talk.says('EHLO x\r\n', '250');
  t.notRegex(offered, /AUTH/);
  t.regex(offered, /STARTTLS/);
  t.regex(await talk.says(`AUTH PLAIN ${plain(world.key)}\r\n`, '538 5.7.11'), /UNAUTHORIZED/);
  t.regex(await talk.says('MAIL FROM:<a@b.invalid>\r\n', '530 5.7.0'), /UNAUTHORIZED/);
  await talk.says('STARTTLS\r\n', '220');
  await talk.secure();
  t.regex(await talk.says('EHLO x\r\n', '250'), /AUTH PLAIN LOGIN/);
  await talk.says('MAIL FROM:<a@b.invalid>\r\n', '530 5.7.0');
  await talk.says(`AUTH PLAIN ${plain(world.key)}\r\n`, '235');
  await submit(talk, to, good);

  const lenient = await startSubmission(t, { settings: { POSTERN_SUBMISSION_ALLOW_CLEAR: 'true' } });
  const clear = await connectSmtp(lenient.ports.starttls);
  t.regex(await clear.says('EHLO x\r\n', '250'), /AUTH PLAIN LOGIN/);
  await clear.says(`AUTH PLAIN ${plain(lenient.key)}\r\n`, '235');
  await submit(clear, to, good);
});

const contents: Record<string, [lines: string[], expected: string]> = Object.fromEntries(
  table('submission/refused-contents'),
);

test('a message that is not well-formed, or against the contract, is refused, and the session goes on', async (t) => {
  const world = worlds.sqlite;
  const tenant = await tenantOf(world, { quota: 100 });
  for (const [name, [lines, expected]] of Object.entries(contents)) {
    const talk = await loggedIn(tenant);
    await t.notThrowsAsync(submit(talk, to, lines, expected), name);
    await t.notThrowsAsync(talk.says('NOOP\r\n', '250'), name);
    talk.close();
  }
  t.is((await world.db('emails').where({ org_id: tenant.orgId })).length, 0);
  t.is((await world.db('organizations').where({ id: tenant.orgId }).first('quota_used')).quota_used, 0);
});

test('senders, recipients and sizes that cannot be are refused at their command', async (t) => {
  const tenant = await tenantOf(worlds.sqlite);
  const talk = await loggedIn(tenant);
  await talk.says('MAIL FROM:<a@b.invalid> SIZE=30000000\r\n', '552 5.3.4');
  await talk.says('RCPT TO:<a@b.invalid>\r\n', '503 5.5.1');
  await talk.says('MAIL FROM:<a@localhost> SIZE=300 BODY=8BITMIME\r\n', '250');
  await talk.says('RCPT TO:<ann@localhost>\r\n', '553 5.1.3');
  await talk.says('RCPT TO:<ann@[192.0.2.1]>\r\n', '553 5.1.3');
  t.regex(await talk.says('DATA\r\n', '503 5.5.1'), /RCPT/);
});

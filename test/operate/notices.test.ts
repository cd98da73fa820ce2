/**
 * Notices by mail: who is told of what, once, by one of several nodes, without cost; bounded in the hour, and never about
 * themselves.
 */
import test, { type ExecutionContext } from 'ava';
import { v7 as uuid } from 'uuid';
import { setMembership } from '#accounts/rows/memberships.ts';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { changeUser, insertUser } from '#accounts/rows/users.ts';
import { type DatabaseKind, journeyKinds } from '#lab/database/databases.ts';
import { verifyDkim } from '#lab/dkim.ts';
import { partOf } from '#lab/mail.ts';
import { sharedSecret, startNode } from '#lab/scenes/nodes.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { parseMail } from '#mail/returned/parse/parsed-mail.ts';

const minute = 60_000;
const hour = 60 * minute;

async function startScene(
  t: ExecutionContext,
  database: DatabaseKind,
  settings: Record<string, string> = {},
) {
  const world = await startWorld(t, {
    database,
    tenant: { quota: 0 },
    settings: { ...sharedSecret, POSTERN_NOTICES_FROM: 'Postern <postern@sender.invalid>', ...settings },
    zone: { 'elsewhere.invalid': { MX: ['10 mx1.invalid'] } },
  });
  const { db, clock, orgId, mx } = world;
  const person = async (email: string, isOperator = false) => {
    const id = (await insertUser(db, { email, name: email, isOperator }, clock.now()))!;
    await changeUser(db, id, { passwordHash: 'x' });
    return id;
  };
  const own = async (email: string, of = orgId) =>
    setMembership(db, { userId: await person(email), orgId: of, role: 'owner' }, clock.now());
  /** The server has disabled it: its owners must act. */
  const disabledWebhook = async (url: string, of = orgId) => {
    const id = uuid();
    const row = {
      id,
      org_id: of,
      url,
      secret: 'x',
      types: '[]',
      after_position: 0,
      status: 'disabled',
      reason: 'it answered 500',
    };
    await db('webhooks').insert({ ...row, created_at: 1, updated_at: 1 });
    return id;
  };
  /** A destination whose mail has just bounced because it refuses us: operators must act. */
  const refused = async (name: string, until = clock.now() + 30 * 24 * hour) => {
    const at = { since: clock.now(), at: until, bouncedAt: until };
    const problem = {
      cause: 'blocklisted',
      category: 'blocked',
      count: 3,
      host: null,
      reply: '550 5.7.1 <listed>',
    };
    const rest = {
      connections: 0,
      limit: 5,
      waiting: 0,
      circuit: null,
      busySince: null,
      lastReply: null,
      lastReplyAt: null,
    };
    const state = JSON.stringify({ ...rest, problem: { ...problem, ...at } });
    await db('destinations').insert({ name, node: 'another', state, at: until });
  };
  const told = async () =>
    Promise.all(
      mx[0]!.messages.map(async ({ to, raw }) => {
        const mail = await parseMail(raw, false);
        return {
          to: [...to].sort().join(),
          subject: mail.header('subject'),
          text: partOf(raw, 'text/plain'),
          raw,
        };
      }),
    );
  /** Passes the time, and resolves with the mails that have come in all. */
  const after = async (ms: number, count: number) => {
    await clock.jump(ms);
    await clock.passUntil(() => mx[0]!.messages.length >= count, { step: '10s' });
    await clock.advance(2 * minute);
    const mails = await told();
    t.is(mails.length, count, mails.map(({ subject }) => subject).join('; '));
    return mails;
  };
  return { world, person, own, disabledWebhook, refused, after };
}

for (const kind of journeyKinds) {
  test(`${kind}: what needs action is told once by one node, to operators or owners, signed and without cost; then that it is solved`, async (t) => {
    const { world, person, own, disabledWebhook, refused, after } = await startScene(t, kind);
    const { db, orgId } = world;
    if (kind === 'postgres') await startNode(t, world, { roles: ['http'] });
    await person('olga@there.invalid', true);
    await own('ann@there.invalid');
    const webhookId = await disabledWebhook('https://app.invalid/hook');
    await refused('bounced.invalid');

    const mails = await after(minute, 2);
    const [toOwner, toOperator] = mails.toSorted((a, b) => (a.to < b.to ? -1 : 1));
    t.is(toOwner!.to, 'ann@there.invalid');
    t.regex(toOwner!.subject, /^https:\/\/app\.invalid\/hook: webhook failing$/);
    t.regex(toOwner!.text, /Disabled\.\s+The answer was: it answered 500\s+Events are kept for it\./);
    t.true(toOwner!.text.includes(`/dashboard/o/${orgId}/webhooks/${webhookId}`));
    t.notRegex(toOwner!.text, /postern webhook/, 'owners have no command line');
    t.is(toOperator!.to, 'olga@there.invalid');
    t.regex(toOperator!.subject, /^bounced\.invalid: refuses us because of a blocklist/);
    t.regex(toOperator!.text, /550 5\.7\.1 <listed>[\s\S]*\n {4}postern /);
    t.true(partOf(toOperator!.raw, 'text/html').includes('550 5.7.1 &lt;listed>'));
    t.regex(toOperator!.raw.toString(), /^Auto-Submitted: auto-generated\r$/m);
    t.like((await verifyDkim(toOperator!.raw, world.dns))[0], { domain: 'sender.invalid', result: 'pass' });
    t.deepEqual(await db('emails').pluck('credits'), [0, 0]);
    t.deepEqual(await db('credit_entries').where({ reason: 'send' }), []);

    await after(30 * minute, 2);
    await db('webhooks').where({ id: webhookId }).update({ status: 'enabled', reason: null });
    await after(minute, 2);
    await db('webhooks').where({ id: webhookId }).update({ status: 'disabled', reason: 'it answered 500' });
    await after(hour, 2);
    await db('webhooks').where({ id: webhookId }).update({ status: 'enabled', reason: null });
    await db('destinations').where({ node: 'another' }).delete();
    const solved = (await after(minute, 4)).slice(2).map(({ subject }) => subject);
    t.deepEqual(solved.sort(), [
      'Solved: bounced.invalid: refuses us because of a blocklist or our reputation',
      'Solved: https://app.invalid/hook: webhook failing',
    ]);
    await db('webhooks').where({ id: webhookId }).update({ status: 'disabled', reason: 'it answered 500' });
    await after(10 * minute, 4);
    await after(hour, 5);
  });
}

test('many entries are one mail, at most twenty entries are told in an hour, and one without owners is told to operators', async (t) => {
  const { world, person, own, disabledWebhook, refused, after } = await startScene(t, 'sqlite');
  await person('olga@there.invalid', true);
  await own('ann@there.invalid');
  const nobodys = await insertOrganization(world.db, 'Nobody', world.clock.now());
  await disabledWebhook('https://nobody.invalid/', nobodys);
  for (let n = 0; n < 15; n++) await disabledWebhook(`https://app.invalid/${n}`);
  for (let n = 0; n < 8; n++) await refused(`d${n}.invalid`);
  const mails = await after(minute, 2);
  const counted = mails.map(({ to, text }) => [to, Number(/(\d+) problems need action/.exec(text)?.[1])]);
  t.true(
    mails.every(({ subject }) => /: .*, and (8|10) more$/.test(subject)),
    'each names a trouble',
  );
  t.deepEqual(counted.sort(), [
    ['ann@there.invalid', 11],
    ['olga@there.invalid', 9],
  ]);
  t.regex(mails.find(({ to }) => to.startsWith('olga'))!.text, /https:\/\/nobody\.invalid/);
  await after(50 * minute, 2);
  const rest = (await after(15 * minute, 3))[2]!;
  t.regex(rest.text, /4 problems need action/);
});

test('one organization leaves notices of the hour for others, and a host puts no link into them', async (t) => {
  const { world, person, own, disabledWebhook, refused, after } = await startScene(t, 'sqlite');
  await person('olga@there.invalid', true);
  await own('ann@there.invalid');
  for (let n = 0; n < 30; n++) await disabledWebhook(`https://app.invalid/${n}`);
  t.regex((await after(minute, 1))[0]!.text, /12 problems need action/);
  await refused('d.invalid');
  const [, toOperator] = await after(2 * minute, 2);
  t.is(toOperator!.to, 'olga@there.invalid');
  await world.db('notices').delete();
  t.notRegex(toOperator!.text.replaceAll(world.url(), ''), /https?:\/\/(?!postern)/);
});

test('what goes on before there is an operator is told to the first one, also before the invitation is accepted', async (t) => {
  const { world, refused, after } = await startScene(t, 'sqlite');
  await refused('bounced.invalid');
  await after(10 * minute, 0);
  await insertUser(world.db, { email: 'olga@there.invalid', name: 'Olga', isOperator: true }, 1);
  const [mail] = await after(2 * minute, 1);
  t.is(mail!.to, 'olga@there.invalid');
  t.regex(mail!.subject, /^bounced\.invalid: refuses us/);
  await after(10 * minute, 1);
});

test('nobody is told of their own destination; a notice that cannot leave is dropped after a day and makes no other', async (t) => {
  const { world, person, refused, after } = await startScene(t, 'sqlite');
  const { db, clock } = world;
  await person('olga@there.invalid', true);
  await db('routes').insert({ domain: 'there.invalid', destination: 'mx.there.invalid' });
  await refused('mx.there.invalid');
  await after(minute, 0);
  world.mx[0]!.script = { greeting: () => '421 4.3.2 not now' };
  await refused('bounced.invalid');
  await clock.passUntil(async () => (await db('emails')).length === 1, { step: '10s' });
  await clock.jump(25 * hour);
  await clock.passUntil(async () => (await db('deliveries').where({ status: 'expired' })).length === 1, {
    step: '10s',
  });
  await clock.advance(5 * minute);
  t.is((await db('emails')).length, 1);
  t.is((await db('notices')).length, 2);
});

test('without a verified domain nothing is told until it is there; out of credits is told to owners, by a mail that is free', async (t) => {
  const { world, own, after } = await startScene(t, 'sqlite');
  const { db, orgId } = world;
  await own('ann@there.invalid');
  await db('domains').update({ name: 'other.invalid' });
  await db('organizations').update({ told_exhausted: true });
  await after(10 * minute, 0);
  await db('domains').update({ name: 'sender.invalid' });
  const [mail] = await after(2 * minute, 1);
  const { subject, text } = mail!;
  t.regex(subject, /^Tenant: no credits left$/);
  t.regex(text, /None left\.\s+Sends are refused until credits are added\./);
  t.true(text.includes(`/dashboard/o/${orgId}/usage`));
});

/** A paused organization stops within a second, over all nodes: keys, submission, people, queue. Resumed, it has lost no mail. */
import test, { type ExecutionContext } from 'ava';
import { createPasswords } from '#accounts/people/passwords.ts';
import { setMembership } from '#accounts/rows/memberships.ts';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { changeUser, insertUser } from '#accounts/rows/users.ts';
import { createBrowser, password, signIn } from '#lab/browser/browser.ts';
import { cliOf } from '#lab/cli.ts';
import { type DatabaseKind, oneKind } from '#lab/database/databases.ts';
import { sharedSecret, startNode } from '#lab/scenes/nodes.ts';
import { loggedIn, startSubmission } from '#lab/scenes/submission.ts';
import { until } from '#lab/until.ts';

const later = { rcpt: () => '451 4.3.0 try again later' };
const reason = 'unpaid bills';
const told =
  /paused since 2\S+Z by the operator of this service: unpaid bills\. Ask the operator to resume it/;
const threeDays = 3 * 86_400_000;

/** On PostgreSQL there is another node, which takes mail and sends it. */
async function startNodes(t: ExecutionContext, database: DatabaseKind) {
  const exchangers = [{ script: later }];
  const world = await startSubmission(t, { database, exchangers, settings: sharedSecret });
  const alone = { submissionPort: null, submissionTlsPort: null };
  const others = database === 'postgres' ? [await startNode(t, world, alone)] : [];
  const { id: orgId } = await world.db('organizations').first('id');
  const other = await insertOrganization(world.db, 'Other', world.clock.now());
  const person = async (email: string, orgs: string[]) => {
    const userId = (await insertUser(world.db, { email, name: email, isOperator: false }, 0))!;
    const passwordHash = await createPasswords({ N: 2, r: 1, p: 1 }).hash(password, 'test');
    await changeUser(world.db, userId, { passwordHash });
    for (const org of orgs) await setMembership(world.db, { userId, orgId: org, role: 'owner' }, 0);
  };
  await person('ann@tenant.invalid', [orgId]);
  await person('bea@tenant.invalid', [orgId, other]);
  const sendAt = (url: string, to: string) => world.at(url).send({ to });
  return { world, orgId, other, urls: [world.url(), ...others.map(({ url }) => url)], sendAt };
}

test('a paused organization sends nothing and lets nobody in; resumed, its mail goes on', async (t) => {
  const { world, orgId, other, urls, sendAt } = await startNodes(t, oneKind);
  const { json, refusal } = cliOf(t, world);
  const { db, clock, mx } = world;
  const { emailId } = (await world.send({ to: 'waits@there.invalid' })).body;
  await world.when(emailId, ({ status }) => status === 'deferred');
  const talk = await loggedIn({ world, orgId, key: world.key });
  const ann = createBrowser(world);
  t.is((await signIn(ann, 'ann@tenant.invalid')).status, 200);

  t.like(await json('org pause Tenant --reason', reason), { id: orgId, paused: { reason } });
  for (const [index, url] of urls.entries()) {
    const refused = await until(
      async () => {
        const answer = await sendAt(url, `${index}-${Math.random()}@there.invalid`);
        return answer.status === 403 && answer.body;
      },
      { what: `node ${index} to refuse the key` },
    );
    t.is(refused.error, 'FORBIDDEN');
    t.regex(refused.message, told);
  }
  t.is((await fetch(`${urls[0]}/api/public/email/${emailId}`)).status, 401, 'without a key as ever');
  t.regex(
    await talk.says('MAIL FROM:<app@sender.invalid>\r\n', '550'),
    /^550 5\.7\.1 FORBIDDEN: The organization has been paused/,
  );

  const again = createBrowser(world);
  const kept = await signIn(again, 'ann@tenant.invalid');
  t.is(kept.status, 403);
  t.regex(kept.text, told);
  const page = await ann.get(`/dashboard/o/${orgId}`);
  t.is(page.status, 403, 'who is in already sees no page of it');
  t.regex(page.text, told);
  const bea = createBrowser(world);
  t.is((await signIn(bea, 'bea@tenant.invalid')).status, 200, 'who has another organization is let in');
  t.is((await bea.get(`/dashboard/o/${other}`)).status, 200);
  t.is((await bea.get(`/dashboard/o/${orgId}`)).status, 403);

  mx[0]!.script = {};
  await clock.advance(threeDays);
  const mail = () => db('deliveries').where({ email_id: emailId }).first();
  t.like(await mail(), { status: 'deferred', attempts: 1 }, 'neither tried nor expired');
  t.is(mx[0]!.messages.length, 0);
  const [why] = (await json(`email why ${emailId}`)).recipients;
  t.regex(why.why, /operator has paused its organization since 2\S+ \("unpaid bills"\); the pause/);
  const [line] = await json('queue summary');
  t.is(line.condition.text, 'waits for organizations that are paused');

  // The command line has the machine's clock: for it the three days are put before now.
  await db('organizations').where({ id: orgId }).decrement('paused_at', threeDays);
  await db('deliveries').where({ org_id: orgId }).decrement('updated_at', threeDays);
  const resumed = await json('org resume Tenant --reason paid');
  t.is(resumed.paused, null);
  t.true(resumed.resumed.waiting > 0);
  t.regex(await refusal(1, 'org resume Tenant --reason again'), /Tenant is not paused/);
  await clock.passUntil(async () => (await mail()).status === 'delivered', {
    what: 'the mail that waited to be delivered',
  });
  for (const [index, url] of urls.entries())
    await until(async () => (await sendAt(url, `${index}-${Math.random()}@there.invalid`)).status === 200, {
      what: `node ${index} to take the key again`,
    });
  t.is((await ann.get(`/dashboard/o/${orgId}`)).status, 200);
});

/**
 * The rule of ownership, walked: every reading and changing route, by everybody (nobody, each role, operators, the owner of another
 * organization, each kind of key), with the things of others. Nobody is shown what is another's, and nobody changes it.
 */
import test, { type ExecutionContext } from 'ava';
import { makeKey } from '#accounts/create-key.ts';
import { makeStream } from '#accounts/manage-streams.ts';
import { roles } from '#accounts/people/roles.ts';
import { inviteMember } from '#accounts/people/team.ts';
import { runAlone } from '#lab/alone.ts';
import { createCli } from '#lab/cli.ts';
import { rowsOf, type Things, type Visitor, walkOwnership } from '#lab/ownership-walk.ts';
import { type Org, type Scene, startScene } from '#lab/scenes/dashboard-scene.ts';
import { samplePause } from '#lab/scenes/sample-pause.ts';
import { until } from '#lab/until.ts';
import { serverOrgId } from '#platform/values/glossary.ts';
import { streamNumber } from '#platform/values/stream.ts';

/** So many looks in a row that find the same, each of some statements. */
const timesAtRest = 50;

const settings = { POSTERN_NOTICES_FROM: 'Postern <notices@acme.invalid>' };

/** A new operator is invited by mail from A's domain, which waits. */
async function thingsOfServer(t: ExecutionContext, { world }: Scene): Promise<Things> {
  const { config, dns, db, clock } = world;
  const { json } = createCli(t, {
    ...settings,
    POSTERN_DATA_DIR: config.dataDir,
    POSTERN_DNS_SERVERS: dns.address,
    ...(config.databaseUrl && { POSTERN_DATABASE_URL: config.databaseUrl }),
  });
  const to = 'defer-boss@there.invalid';
  const { url } = await json(`user create --operator --email ${to}`);
  const delivery = () => db('deliveries').where({ org_id: serverOrgId }).first();
  await clock.passUntil(async () => (await delivery())?.status === 'deferred');
  const { id, email_id: email } = await delivery();
  const event = await db('events').where({ email_id: email }).first();
  const token = url.split('/').at(-1);
  return {
    name: "the server's mail",
    named: { org: serverOrgId, email, event: event.id, bounce: String(event.position), address: to },
    marks: [to, email, id, event.id, token, serverOrgId],
    secrets: [token, `/o/${serverOrgId}`],
    rows: () => rowsOf(db, serverOrgId),
  };
}

async function thingsOf({ world, make }: Scene, org: Org, live = false): Promise<Things> {
  const { db, clock } = world;
  const scheduledAt = new Date(clock.now() + 86_400_000).toISOString();
  const email = await make.email(org, `later-${org.slug}@there.invalid`, { scheduledAt });
  const { id: key } = await db('api_keys').where({ org_id: org.id, is_test: false }).first('id');
  const suppression = await db('suppressions').where({ org_id: org.id }).first();
  const route = await db('receiving_routes').where({ org_id: org.id }).first();
  const stream = `news-of-${org.slug}`;
  if (!live) await makeStream(db, { orgId: org.id, name: stream, title: `Title of ${stream}` }, clock.now());
  const pause = await samplePause(db, org.id, stream, clock.now());
  const event = await db('events').where({ email_id: email }).first();
  const bounce = await db('events').where({ org_id: org.id, type: 'email.bounced' }).first();
  const invited = `invited-${org.slug}@there.invalid`;
  const member = { orgId: org.id, email: invited, name: invited, role: 'viewer' as const };
  await inviteMember(db, member, { now: clock.now(), byOperator: false });
  const invitation = await db('invitations').where({ org_id: org.id }).first();
  const own = ['later', 'bounce', 'defer'].map((kind) => `${kind}-${org.slug}@there.invalid`);
  return {
    name: `${live ? 'live things' : 'things'} of ${org.slug}`,
    named: {
      org: org.id,
      email,
      webhook: org.webhookId,
      route: route.id,
      received: org.receivedId,
      key,
      domain: org.domain,
      address: suppression.address,
      suppression: suppression.id,
      pause,
      stream,
      group: String(streamNumber(stream)),
      user: org.people.owner,
      invitation: invitation.id,
      event: event.id,
      bounce: String(bounce.position),
    },
    marks: [
      ...own,
      invited,
      invitation.hash,
      email,
      key,
      org.webhookId,
      route.id,
      org.receivedId,
      suppression.address,
      stream,
      pause,
      event.id,
      ...(live ? [] : [org.id]),
    ],
    secrets: [],
    rows: () => rowsOf(db, org.id, live),
  };
}

async function startWalk(t: ExecutionContext) {
  const scene = await startScene(t, settings);
  const { world, a, b, operator, browserOf } = scene;
  const { db, clock } = world;
  const server = await thingsOfServer(t, scene);
  const [ofA, ofB, liveOfA] = [
    await thingsOf(scene, a),
    await thingsOf(scene, b),
    await thingsOf(scene, a, true),
  ];
  await db('organizations').update({ requests_per_day: null, emails_per_day: null });
  const keyOf = async (org: Org, scopes: string[], isTest = false) =>
    (await makeKey(db, { orgId: org.id, label: 'walk', scopes, test: isTest, strict: false }, clock.now()))
      .key;
  const asKey = async (name: string, org: Org, scopes: string[], foreign: Things[], isTest = false) =>
    ({ name, key: await keyOf(org, scopes, isTest), orgId: org.id, foreign }) satisfies Visitor;
  const asUser = async (name: string, userId: string | null, orgId: string, foreign: Things[]) => {
    const { jar, _csrf: csrf } = await browserOf(userId);
    const cookie = [...jar].map(([key, value]) => `${key}=${value}`).join('; ');
    return { name, session: { cookie, csrf }, orgId, foreign } satisfies Visitor;
  };
  const [others, underTest] = [
    [ofB, server],
    [liveOfA, ofB, server],
  ];
  const everything = [ofA, ofB, server];
  const visitors: Visitor[] = [
    { name: 'nobody, without a key', key: null, orgId: a.id, foreign: everything },
    await asKey('a test key with full access', a, ['full_access'], underTest, true),
    await asKey('a test key that reads', a, ['email:read'], underTest, true),
    await asKey('a test key that sends', a, ['email:send'], underTest, true),
    await asKey('a live key that reads', a, ['email:read'], others),
    await asKey('a live key that sends', a, ['email:send'], others),
    await asKey('a live key of one domain', a, ['full_access', `domain_scope:${a.domain}`], others),
    await asUser('nobody', null, a.id, everything),
    ...(await Promise.all(roles.map((role) => asUser(role, a.people[role], a.id, others)))),
    { ...(await asUser('an operator', operator, a.id, [server])), isOperator: true },
    await asUser('the owner of another organization', b.people.owner, b.id, [ofA, server]),
    // Last, because they change their own organization.
    await asKey('a live key with full access', a, ['full_access'], others),
    await asKey("another organization's key", b, ['full_access'], [server]),
  ];
  // Notices about what has happened so far are still being sent; the walk compares rows while the clock stands still.
  const rows = async () =>
    JSON.stringify(await Promise.all([server, ofA, ofB].map((things) => things.rows())));
  let seen = { rows: '', times: 0 };
  await until(async () => {
    const now = await rows();
    seen = now === seen.rows ? { rows: now, times: seen.times + 1 } : { rows: now, times: 0 };
    return seen.times === timesAtRest;
  });
  return { scene, visitors, server, liveOfA };
}

test('each route, by everybody, with what is not theirs: it is neither shown nor changed', async (t) => {
  await runAlone(t);
  const { scene, visitors } = await startWalk(t);
  const lines: string[] = [];
  const tally = await walkOwnership({ url: scene.world.url() }, visitors, (line) => lines.push(line));
  t.log(
    `${tally.routes} routes, ${visitors.length} visitors, ${tally.requests} requests; ${lines.join('; ')}`,
  );
  t.deepEqual(tally.faults, []);
  t.true(tally.requests > 400);
});

test('a live stream of events keeps to the same rule', async (t) => {
  const { scene, visitors, server, liveOfA } = await startWalk(t);
  const { world, make, a } = scene;
  const key = visitors.find(({ name }) => name === 'a test key with full access')!.key!;
  const stopping = new AbortController();
  const headers = { authorization: `Bearer ${key}`, accept: 'text/event-stream' };
  const response = await fetch(`${world.url()}/api/public/events`, { headers, signal: stopping.signal });
  let text = '';
  const reading = (async () => {
    for await (const chunk of response.body!) text += Buffer.from(chunk).toString();
  })().catch(() => {});
  await make.email(a, 'after-live@there.invalid');
  await make.email({ ...a, key }, 'after-test@there.invalid');
  await world.clock.passUntil(() => text.includes('after-test@'));
  stopping.abort();
  await reading;
  t.regex(text, /after-test@/);
  t.notRegex(text, /after-live@/);
  for (const mark of [...server.marks, ...liveOfA.marks]) t.false(text.includes(mark), mark);
});

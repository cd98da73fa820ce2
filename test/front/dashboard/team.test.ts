/** The team: invited by a link, with roles; an owner always stays; nobody's other organizations are shown or opened. */
import test, { type ExecutionContext } from 'ava';
import { Secret, TOTP } from 'otpauth';
import { makeOrganization } from '#accounts/create-organization.ts';
import { invite } from '#accounts/people/people.ts';
import { changeRole, inviteMember, maxInvitations, removeMember } from '#accounts/people/team.ts';
import { type Browser, createBrowser, password, setUp } from '#lab/browser/browser.ts';
import { cliOf, createCli } from '#lab/cli.ts';
import { partOf } from '#lab/mail.ts';
import { startWorld, type WorldOptions } from '#lab/scenes/world.ts';

async function arrive(t: ExecutionContext, options: WorldOptions = {}) {
  const world = await startWorld(t, options);
  const operator = createBrowser(world);
  await setUp(operator, world);
  const [{ id }] = await world.db('organizations').select('id');
  const orgId = id as string;
  const base = `/dashboard/o/${orgId}/team`;
  /** Invited by the operator, with a password. */
  const join = async (email: string, role: string, of = orgId) => {
    await operator.get(`/dashboard/o/${of}/team`);
    const link = linkIn((await operator.submit('/team', { email, role })).html)!;
    const browser = createBrowser(world);
    await browser.get(link);
    await browser.submit('', { password });
    return browser;
  };
  return { world, operator, orgId, base, join };
}

const linkIn = (html: string) => /\/dashboard\/(?:welcome|join)\/[\w-]+/.exec(html)?.[0];

test('an owner invites by a link, changes roles and removes, and all of it holds at once', async (t) => {
  const { world, base, join } = await arrive(t);
  const owner = await join('owner@team.invalid', 'owner');
  await owner.get(base);
  t.regex((await owner.submit('/team', { email: 'nobody', role: 'viewer' })).text, /Enter an email address/);
  const invited = await owner.submit('/team', {
    email: 'dev@team.invalid',
    name: 'Dora <b>',
    role: 'developer',
  });
  const link = linkIn(invited.html)!;
  t.regex(invited.text, /Dora <b> Send this link/);
  const list = await owner.get(base);
  t.is(linkIn(list.html), undefined, 'shown once');
  t.regex(list.text, /Dora <b> Invited dev@team\.invalid/);
  const again = linkIn(
    (await owner.submit('/team', { email: 'DEV@team.invalid', name: 'Dora <b>', role: 'developer' })).html,
  )!;
  const dev = createBrowser(world);
  t.is((await dev.get(link)).status, 404, 'a new link ends the old one');
  await dev.get(again);
  await dev.submit('', { password });
  t.is((await dev.get(base)).status, 403, 'the team is for owners');
  t.is((await createBrowser(world).get(again)).status, 404, 'it works once');

  await owner.get(base);
  t.regex(
    (await owner.submit('/team', { email: 'dev@TEAM.invalid', role: 'viewer' })).text,
    /with this address already exists/,
  );
  const { id } = await world.db('users').where({ email: 'DEV@team.invalid' }).first('id');
  t.regex((await owner.submit(`/${id}/role`, { role: 'owner' })).text, /Dora <b> is now owner/);
  t.is((await dev.get(base)).status, 200);
  t.regex((await owner.submit(`/${id}/remove`)).text, /was removed from the team/);
  t.is((await dev.get(base)).status, 404);
});

test('who is removed does not come back by an invitation from before', async (t) => {
  const { world, orgId, base, join } = await arrive(t);
  const owner = await join('owner@team.invalid', 'owner');
  await owner.get(base);
  const link = linkIn((await owner.submit('/team', { email: 'ann@team.invalid', role: 'owner' })).html)!;
  // An operator adds the person meanwhile, and the invitation is not listed any more.
  const ann = await join('ann@team.invalid', 'owner');
  const { id: userId } = await world.db('users').where({ email: 'ann@team.invalid' }).first('id');
  await owner.get(base);
  await owner.submit(`/${userId}/remove`);
  t.is((await ann.get(base)).status, 404);
  t.is((await ann.get(link)).status, 404);
  t.deepEqual(await world.db('memberships').where({ org_id: orgId, user_id: userId }), []);
});

test('the last owner is neither removed nor demoted; one of two may go', async (t) => {
  const { world, base, join } = await arrive(t);
  const owner = await join('owner@team.invalid', 'owner');
  await owner.get(base);
  t.regex((await owner.submit('/role', { role: 'viewer' })).text, /is the only owner/);
  t.regex((await owner.submit('/remove')).text, /is the only owner/);
  await join('second@team.invalid', 'owner');
  await owner.get(base);
  const { id } = await world.db('users').where({ email: 'owner@team.invalid' }).first('id');
  const left = await owner.submit(`/${id}/role`, { role: 'viewer' });
  t.not(left.path, base);
  t.is((await owner.get(base)).status, 403);
});

test('of two owners who leave at the same moment one stays', async (t) => {
  const { world, orgId } = await arrive(t, {});
  const { db, clock } = world;
  const terms = { now: clock.now(), byOperator: true };
  for (const email of ['a@team.invalid', 'b@team.invalid'])
    await inviteMember(db, { orgId, email, name: email, role: 'owner' }, terms);
  const ids = (await db('memberships').where({ org_id: orgId })).map(({ user_id }) => user_id);
  const [left, demoted] = await Promise.all([
    removeMember(db, { orgId, userId: ids[0] }),
    changeRole(db, { orgId, userId: ids[1], role: 'viewer' }, clock.now()),
  ]);
  t.deepEqual([left, demoted].sort(), ['done', 'last owner']);
  t.is((await db('memberships').where({ org_id: orgId, role: 'owner' })).length, 1);
});

/** Addresses: without an account; with one of another organization, with a password and without; of an operator. */
async function arriveWithOthers(t: ExecutionContext) {
  const scene = await arrive(t);
  const { world, join } = scene;
  const owner = await join('owner@team.invalid', 'owner');
  const now = world.clock.now();
  const other = await makeOrganization(world.db, { name: 'Secret Other' }, now);
  const member = { orgId: other.id, role: 'owner' as const };
  const person = { email: 'pending@other.invalid', name: 'Somebody', isOperator: false };
  const { link } = await invite(world.db, { ...person, member }, now);
  const settled = await join('settled@other.invalid', 'developer', other.id);
  const emails = ['new@other.invalid', person.email, 'settled@other.invalid', 'olga@postern.invalid'];
  return { ...scene, owner, settled, other, emails, theirLink: link!.path };
}

test('an owner does not learn whether an address has an account: answers and lists are the same', async (t) => {
  const { world, owner, base, emails, theirLink } = await arriveWithOthers(t);
  const shown = new Set<string>();
  const links: string[] = [];
  for (const email of emails) {
    await owner.get(base);
    const answer = await owner.submit('/team', { email, name: 'Ann', role: 'viewer' });
    links.push(linkIn(answer.html)!);
    const list = await owner.get(base);
    const opened = await createBrowser(world).get(links.at(-1)!);
    const page = [answer, list, opened].map(({ status, text }) => `${status} ${text}`).join('\n');
    t.notRegex(page, /Secret/);
    shown.add(page.replaceAll(email, 'EMAIL').replace(/\/join\/[\w-]+/g, 'LINK'));
    const { id } = await world.db('invitations').first('id');
    await owner.get(base);
    t.regex((await owner.submit(`/invitations/${id}/remove`)).text, /was removed/);
  }
  t.is(shown.size, 1, [...shown].join('\n\n'));
  t.is((await createBrowser(world).get(links[0]!)).status, 404, 'it was removed');
  t.is((await createBrowser(world).get(theirLink)).status, 200, 'the link of the other organization holds');
});

test('a person with an account joins by signing in with it; a link gives nobody the account of another', async (t) => {
  const { world, operator, owner, settled, other, base, orgId, emails, theirLink } =
    await arriveWithOthers(t);
  const linkFor = async (email: string) => {
    await owner.get(base);
    return linkIn((await owner.submit('/team', { email, role: 'developer' })).html)!;
  };
  const roleIn = async (email: string) =>
    (
      await world
        .db('memberships')
        .join('users', 'users.id', 'memberships.user_id')
        .where({ org_id: orgId, email })
        .first('role')
    )?.role;
  for (const email of emails.slice(1)) {
    const stranger = createBrowser(world);
    await stranger.get(await linkFor(email));
    const refused = await stranger.submit('', { password });
    t.regex(refused.text, /This address has an account/, email);
    t.is(await roleIn(email), undefined);
  }
  const link = await linkFor('settled@other.invalid');
  t.regex((await owner.get(link)).text, /signed in with another address/);
  await settled.get(link);
  t.regex((await settled.submit('')).text, /You are now a member of Tenant/);
  t.is(await roleIn('settled@other.invalid'), 'developer');

  // The operator adds people at once; whoever belongs elsewhere, too, chooses a password by a link from there.
  await operator.get(base);
  await operator.submit('/team', { email: 'pending@other.invalid', role: 'viewer' });
  t.is(await roleIn('pending@other.invalid'), 'viewer');
  const { id } = await world.db('users').where({ email: 'pending@other.invalid' }).first('id');
  await owner.get(base);
  const stranger = createBrowser(world);
  await stranger.get(linkIn((await owner.submit(`/${id}/link`)).html)!);
  t.regex((await stranger.submit('', { password })).text, /This address has an account/);
  t.regex(
    (await stranger.submit('', { password: 'short' })).text,
    /has an account/,
    'it was not even hashed',
  );
  t.is((await world.db('memberships').where({ org_id: other.id })).length, 2);
  t.is((await createBrowser(world).get(theirLink)).status, 404, 'the operator has made a new one');
});

test('what has been invited before is no account: its old link ends, and invitations are bounded', async (t) => {
  const { world, owner, base, orgId } = await arriveWithOthers(t);
  const { db, clock } = world;
  const terms = { now: clock.now(), byOperator: false };
  const before = { email: 'left@team.invalid', name: 'Left', isOperator: false };
  const { userId, link: old } = await invite(
    db,
    { ...before, member: { orgId, role: 'viewer' } },
    clock.now(),
  );
  await removeMember(db, { orgId, userId });
  await owner.get(base);
  const link = linkIn((await owner.submit('/team', { email: before.email, role: 'viewer' })).html)!;
  const left = createBrowser(world);
  await left.get(link);
  t.is((await left.submit('', { password })).path, base.replace('/team', ''));
  t.is((await createBrowser(world).get(old!.path)).status, 404, 'who has the old link does not choose again');

  for (let n = 0; n < maxInvitations; n++)
    await inviteMember(db, { orgId, email: `n${n}@team.invalid`, name: 'N', role: 'viewer' }, terms);
  await owner.get(base);
  t.regex(
    (await owner.submit('/team', { email: 'more@team.invalid', role: 'viewer' })).text,
    /100 open invitations/,
  );
  t.is((await owner.submit('/team', { email: 'n1@team.invalid', role: 'viewer' })).status, 200);
  await clock.jump('8d');
  await clock.passUntil(async () => (await db('invitations')).length === 0);
});

test('an organization can require a second factor: without one its pages lead to the set-up, its keys keep working', async (t) => {
  const { world, operator, base, orgId, join } = await arrive(t, { tenant: { scopes: ['full_access'] } });
  const org = base.replace('/team', '');
  const other = await makeOrganization(world.db, { name: 'Other' }, world.clock.now());
  const owner = await join('owner@team.invalid', 'owner');
  const dev = await join('dev@team.invalid', 'developer');
  await operator.get(`/dashboard/o/${other.id}/team`);
  await operator.submit('/team', { email: 'dev@team.invalid', role: 'owner' });
  /** The page at hand offers it. */
  const turnOn = (browser: Browser) => {
    const [, secret] = /data-copy="([A-Z2-7]{32})"/.exec(browser.page().html)!;
    const code = new TOTP({ secret: Secret.fromBase32(secret!) }).generate({ timestamp: world.clock.now() });
    return browser.submit('/second-factor', { code, current: password });
  };

  await owner.get(base);
  t.regex((await owner.submit('/team/second-factor')).text, /for your own account first/);
  t.is((await dev.get(`${org}/keys`)).path, `${org}/keys`);
  await owner.get('/dashboard/account/second-factor');
  t.regex((await turnOn(owner)).html, /href="\/dashboard\/account">I have saved them/);
  await owner.get(base);
  t.regex((await owner.submit('/team/second-factor')).text, /authentication is now required in/i);

  const led = `/dashboard/account/second-factor?to=${encodeURIComponent(`${org}/emails?status=bounced`)}`;
  const offered = await dev.get(`${org}/emails?status=bounced`);
  t.is(offered.path, led);
  t.regex(offered.text, /requires two-factor authentication\. Turn it on to continue/);
  const { headers } = await dev.ask('GET', `${org}/keys`, {
    headers: { 'hx-request': 'true', 'hx-current-url': `${world.url()}${org}/emails?status=bounced` },
  });
  t.is(headers.get('hx-redirect'), led, 'also a part of a page');
  await dev.get('/dashboard/account');
  const made = await dev.post(`${org}/keys`, { _csrf: dev.csrf(), label: 'mine', scopes: 'email:send' });
  t.regex(made.path, /second-factor/);
  t.is((await world.db('api_keys').where({ org_id: orgId })).length, 1);
  t.is(
    (await dev.get(`/dashboard/o/${other.id}`)).path,
    `/dashboard/o/${other.id}`,
    'other organizations do not',
  );
  t.regex((await operator.get(org)).path, /second-factor/, 'operators need one too');
  t.is((await world.send({ to: 'ann@there.invalid' })).status, 200);

  await dev.get(`${org}/emails?status=bounced`);
  t.regex(
    (await dev.submit('/second-factor', { code: '000000' })).text,
    /requires two-factor/,
    'a wrong code',
  );
  t.true((await turnOn(dev)).html.includes(`href="${org}/emails?status=bounced">I have saved them`));
  t.is((await dev.get(org)).path, org);

  const { cli } = cliOf(t, world);
  const shown = async (state: string) =>
    JSON.parse((await cli('', 'org', 'two-factor', orgId, state, '--json')).stdout.toString());
  t.like(await shown('off'), { twoFactor: 'optional' });
  t.is((await operator.get(org)).path, org);
  t.like(await shown('on'), { twoFactor: 'required' });
  t.regex((await operator.get(org)).path, /second-factor/);
});

test('with a sender, invitations and resets go to the person by mail; beyond twenty an hour only operators are shown the link', async (t) => {
  const { world, operator, base, orgId } = await arrive(t, {
    settings: { POSTERN_NOTICES_FROM: 'Postern <postern@sender.invalid>' },
  });
  const [mx] = world.mx;
  const mailed = async (count: number) => {
    await world.clock.passUntil(() => mx!.messages.length >= count);
    const { to, raw } = mx!.messages.at(-1)!;
    return { to, text: partOf(raw, 'text/plain'), raw: raw.toString() };
  };
  await operator.get(base);
  const answer = await operator.submit('/team', {
    email: 'dev@there.invalid',
    name: 'Dev\r\nBuy now',
    role: 'viewer',
  });
  t.regex(answer.text, /Enter one line/);
  const sent = await operator.submit('/team', {
    email: 'dev@there.invalid',
    name: 'Buy now',
    role: 'viewer',
  });
  t.regex(sent.text, /An invitation was sent to dev@there\.invalid\./);
  t.is(linkIn(sent.html), undefined, 'only the person gets it');
  const invitation = await mailed(1);
  t.deepEqual(invitation.to, ['dev@there.invalid']);
  t.regex(invitation.raw, /^Subject: You are invited to Tenant\r$/m);
  t.regex(invitation.text, /invited by olga@postern\.invalid to the dashboard of Tenant/);
  t.notRegex(invitation.raw, /Buy now/, 'no text of the person who invites');
  const dev = createBrowser(world);
  t.is((await dev.get(linkIn(invitation.text)!)).status, 200);
  t.is(
    (await dev.submit('', { password })).path,
    base.replace('/team', ''),
    'signed in, without typing it twice',
  );
  t.regex(
    (await operator.get(base)).text,
    /Notices by mail On .* are mailed from postern@sender\.invalid to olga@/,
  );

  const { dataDir, databaseUrl, dnsServers } = world.config;
  const { cli } = createCli(t, {
    POSTERN_DATA_DIR: dataDir,
    POSTERN_DNS_SERVERS: dnsServers.join(' '),
    POSTERN_NOTICES_FROM: 'postern@sender.invalid',
    ...(databaseUrl && { POSTERN_DATABASE_URL: databaseUrl }),
  });
  const { url } = JSON.parse(
    (await cli('', 'user', 'reset', 'dev@there.invalid', '--json')).stdout.toString(),
  );
  const reset = await mailed(2);
  t.true(reset.text.includes(url));
  t.regex(reset.text, /A new password for dev@there\.invalid/);

  const guest = createBrowser(world);
  for (const [email, mails] of [
    ['dev@there.invalid', 3],
    ['unknown@there.invalid', 3],
  ] as const) {
    await guest.get('/dashboard/sign-in');
    await guest.get('/dashboard/forgotten');
    t.regex((await guest.submit('', { email })).text, new RegExp(`If ${email} has an account here, a link`));
    await mailed(mails);
  }
  const asked = await mailed(3);
  t.deepEqual(asked.to, ['dev@there.invalid']);
  t.notRegex(asked.text, /unknown/);
  await guest.get(linkIn(asked.text)!);
  t.regex((await guest.submit('', { password: `another ${password}` })).text, /Your password is set/);
  t.is((await guest.get('/dashboard/account')).status, 200);
  for (let n = 0; n < 5; n++) {
    await guest.get('/dashboard/forgotten');
    await guest.submit('', { email: 'dev@there.invalid' });
  }
  await world.clock.advance('10s');
  t.is(mx!.messages.length, 5, 'three resets an hour');
  for (let n = 0; n < 30; n++) {
    await guest.get('/dashboard/forgotten');
    await guest.submit('', { email: `x${n}@there.invalid` });
  }
  t.regex(guest.page().text, /Too many attempts/);

  for (let n = 1; n < 20; n++) await inviteMore(n);
  t.truthy(linkIn((await inviteMore(20)).html));
  const { id: userId } = await world.db('users').where({ email: 'dev@there.invalid' }).first();
  await changeRole(world.db, { orgId, userId, role: 'owner' }, world.clock.now());
  await guest.get(base);
  const byOwner = await guest.submit('/team', { email: 'other@there.invalid', role: 'viewer' });
  t.is(linkIn(byOwner.html), undefined, 'an owner could make the account of somebody else');
  t.regex(byOwner.text, /was not mailed: the organization has sent all that it may in this hour/);
  await world.clock.jump('1h');
  t.is(linkIn((await inviteMore(21)).html), undefined);
  const inviteOther = async (email: string) => {
    await guest.get(base);
    return (await guest.submit('/team', { email, role: 'viewer' })).text;
  };
  for (let n = 1; n <= 3; n++) t.regex(await inviteOther('other@there.invalid'), /An invitation was sent/);
  t.regex(await inviteOther('OTHER@there.invalid'), /was not mailed: .* or to this person/);
  t.regex(await inviteOther('another@there.invalid'), /An invitation was sent/);

  async function inviteMore(n: number) {
    await operator.get(base);
    return operator.submit('/team', { email: `p${n}@there.invalid`, role: 'viewer' });
  }
});

test('without a sender, the pages say that nothing is mailed and why', async (t) => {
  for (const [settings, why] of [
    [{}, /POSTERN_NOTICES_FROM has no sender/],
    [
      { POSTERN_NOTICES_FROM: 'a@other.invalid' },
      /No organization has the domain of its sender, other\.invalid, verified/,
    ],
  ] as const) {
    const { world, operator, base } = await arrive(t, { settings });
    const { text } = await operator.get(base);
    t.regex(text, /Notices by mail Off No mail tells of problems/);
    t.regex(text, why);
    const invited = await operator.submit('/team', { email: 'dev@there.invalid', role: 'viewer' });
    t.regex(invited.text, /The invitation was not mailed\./);
    t.regex(invited.text, why);
    t.regex((await createBrowser(world).get('/dashboard/forgotten')).text, /Ask the operator/);
  }
});

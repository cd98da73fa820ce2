/** At a host of a customer: that customer's tracking links, policies and challenges, and nothing else. */
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import test from 'ava';
import {
  insertDomain,
  listTrackingHosts,
  setDomainStatus,
  setDomainTracking,
  takeBackHosts,
} from '#accounts/rows/domains-table.ts';
import { asNewTenant, startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

interface Reply {
  status: number;
  location: string | undefined;
  body: string;
}

function ask(world: World, host: string, path: string): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const call = request(world.url() + path, { headers: { host }, agent: false }, async (response) => {
      const { statusCode, headers } = response;
      resolve({ status: statusCode!, location: headers.location, body: await text(response) });
    });
    call.on('error', reject).end();
  });
}

/** The path of the tracked link in a mail of this organization. */
async function clickPath(world: World): Promise<string> {
  const to = `${world.orgId}@there.invalid`;
  const html = '<p><a href="https://app.invalid/x">Go</a></p>';
  await world.send({ to, html, tracking: { clickTracking: true } });
  const found = await until(() => world.mx[0]!.messages.find((one) => one.to.includes(to)));
  const raw = found.raw.toString('latin1').replaceAll('=\r\n', '');
  return /\/t\/c\/[\w-]+/.exec(raw)![0];
}

test('a link redirects at the host of its customer and at the server’s own, and nothing else is served there', async (t) => {
  const world = await startWorld(t);
  const other = await asNewTenant(world);
  const plain = await asNewTenant(world);
  for (const [{ orgId }, host] of [
    [world, 't.sender.invalid'],
    [other, 'links.sender.invalid'],
  ] as const) {
    const { id } = await world.db('domains').where({ org_id: orgId }).first('id');
    await setDomainTracking(world.db, id, { clicks: true, host });
  }
  const paths = {
    own: await clickPath(world),
    others: await clickPath(other),
    plain: await clickPath(plain),
  };
  const statusOf = async (host: string, path: string) => (await ask(world, host, path)).status;
  t.is((await ask(world, 'T.sender.invalid:8080', paths.own)).location, 'https://app.invalid/x');
  t.is(await statusOf('t.sender.invalid', paths.others), 404);
  t.is(await statusOf('t.sender.invalid', paths.plain), 404);
  t.is(await statusOf('links.sender.invalid', paths.own), 404);
  for (const path of Object.values(paths)) t.is(await statusOf('postern.invalid', path), 302);
  for (const path of ['/dashboard', '/api/public/openapi.json', '/docs', '/', '/tx', '/v3/x'])
    t.is(await statusOf('t.sender.invalid', path), 421, path);
  t.is((await ask(world, 't.sender.invalid', '/')).body, 'This host serves tracking links only.\n');
  t.is(await statusOf('t.sender.invalid', '/.well-known/x'), 404);
  t.is(await statusOf('postern.invalid', '/api/public/openapi.json'), 200);
  t.is(await statusOf('other-name.invalid', '/api/public/openapi.json'), 200);
});

test('nobody makes links for the host of another organization, not even before it is theirs', async (t) => {
  const world = await startWorld(t);
  const other = await asNewTenant(world);
  const host = 'go.theirs.invalid';
  const dkim = { dkimSelector: 's', dkimPublicKey: 'p', dkimPrivateKey: 'k' };
  const theirs = (await insertDomain(world.db, { orgId: other.orgId, name: 'theirs.invalid', ...dkim }, 1))!;
  const setHost = ({ call }: World, name: string) =>
    call('PATCH', `/api/public/domains/${name}`, { body: JSON.stringify({ tracking: { host } }) });
  t.is((await setHost(world, 'sender.invalid')).status, 200);
  const early = await clickPath(world);
  t.is((await setHost(other, 'theirs.invalid')).status, 400, 'it is in no verified domain of theirs yet');

  await setDomainStatus(world.db, theirs, 'verified', 1);
  await world.db.transaction((trx) => takeBackHosts(trx, { orgId: other.orgId, name: 'theirs.invalid' }));
  t.is((await setHost(other, 'theirs.invalid')).status, 200);
  t.is((await setHost(world, 'sender.invalid')).status, 400);
  await world.clock.jump('11s');
  t.is((await ask(world, host, early)).status, 404);

  // Neither is a host that is in nobody's verified domain, but in use.
  const third = await asNewTenant(world);
  const outside = JSON.stringify({ tracking: { host: 'go.outside.invalid' } });
  const path = '/api/public/domains/sender.invalid';
  t.is((await third.call('PATCH', path, { body: outside })).status, 200);
  t.is((await world.call('PATCH', path, { body: outside })).status, 400);
});

test('the hosts of an organization with many domains are read in as many rows', async (t) => {
  const { db, orgId } = await startWorld(t);
  const count = 100;
  const domain = await db('domains').first();
  const rows = Array.from({ length: count }, (_, n) => {
    const name = `d${n}.invalid`;
    return { ...domain, id: `${domain.id.slice(0, -3)}${100 + n}`, name, tracking_host: `t.${name}` };
  });
  await db('domains').insert(rows);
  let read = 0;
  db.on('query-response', (answer: unknown[]) => {
    read += answer.length;
  });
  const hosts = await listTrackingHosts(db);
  t.deepEqual(hosts.get('t.d7.invalid'), { owners: [orgId], isOwnDomain: true });
  t.is(hosts.size, count);
  t.is(read, count + count + 1, 'each host and each domain once');
});

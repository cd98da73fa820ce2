/** Item 13 too: rights that are over, and names that are another's now. */
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeKey } from '#accounts/create-key.ts';
import { insertDomain, setDomainStatus } from '#accounts/rows/domains-table.ts';
import { ask, callJson } from '#lab/ask.ts';
import { until } from '#lab/until.ts';
import { createTrackingLinks } from '#mail/record/tracking/tracking-links.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import { type Attack, type Verdict, verdict } from './attack.ts';
import { orgIdOf, type Scene } from './scene.ts';

const mail = { from: 'app@sender.invalid', to: 'ann@there.invalid', subject: 'x', text: 'x' };

/** What a thief holds open, to be ended when the key has been revoked. */
const calls: [path: string, body: object][] = [
  ['/api/public/keys', { label: 'heir', scopes: ['full_access'] }],
  ['/api/public/webhooks', { url: 'https://hooks.invalid/' }],
  ['/api/public/email/send', mail],
  ['/api/public/email/batch', [mail, mail]],
  ['/compat/resend/emails', mail],
];

/** Begins a call; the function ends it, and answers the status. */
function begin({ url }: Scene, key: string, [path, document]: (typeof calls)[number]) {
  const body = JSON.stringify(document);
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  };
  const request = http.request(url + path, { method: 'POST', headers, agent: false });
  const status = new Promise<number>((resolve) => {
    request.once('response', (response) => resolve(response.resume().statusCode!));
    request.once('error', () => resolve(0));
  });
  request.write(body.slice(0, 2));
  return () => {
    request.end(body.slice(2));
    return status;
  };
}

async function revokedKey(scene: Scene): Promise<Verdict> {
  const { url, db } = scene;
  const owner = await scene.addTenant();
  const orgId = await orgIdOf(db, owner);
  const { id, key } = await makeKey(db, { orgId, label: 'leaked', scopes: ['full_access'] }, Date.now());
  const ends = calls.map((call) => begin(scene, key, call));
  await sleep(1_000);
  await callJson(`${url}/api/public/keys/${id}`, owner, 'DELETE');
  await until(async () => (await callJson(`${url}/api/public/keys`, key, 'GET')).status === 401);
  const statuses = await Promise.all(ends.map((end) => end()));
  const heirs = await db('api_keys').where({ org_id: orgId, label: 'heir' });
  const emails = await db('emails').where({ org_id: orgId });
  return verdict(
    `${calls.length} calls of a revoked key: ${statuses.join(', ')}`,
    [heirs.length === 0, 'a revoked key has made itself an heir'],
    [emails.length === 0, `a revoked key has sent ${emails.length} emails`],
    [!statuses.includes(200), 'a call of a revoked key was answered 200'],
  );
}

/** One organization makes links for the host of another: before that one has verified its domain, and when it uses the host. */
async function foreignHost(scene: Scene): Promise<Verdict> {
  const { url, db, config } = scene;
  const [thief, owner] = [await scene.addTenant(), await scene.addTenant()];
  const orgId = await orgIdOf(db, owner);
  const host = 'go.owner.invalid';
  const setHost = async (key: string, name: string) =>
    (await callJson(`${url}/api/public/domains/${name}`, key, 'PATCH', { tracking: { host } })).status;
  const early = await setHost(thief, 'sender.invalid');
  const sent = await callJson(`${url}/api/public/email/send`, thief, 'POST', mail);
  const delivery = await db('deliveries')
    .where({ email_id: JSON.parse(sent.text).emailId })
    .first('id');
  const made = createTrackingLinks(loadSecrets(config)).tracker(
    `https://${host}`,
    await orgIdOf(db, thief),
    delivery.id,
  );
  const path = new URL(made.link('https://evil.invalid/')).pathname;
  // As its check would, when the record is found.
  const dkim = { dkimSelector: 's', dkimPublicKey: 'p', dkimPrivateKey: 'k' };
  const id = await insertDomain(db, { orgId, name: 'owner.invalid', ...dkim }, Date.now());
  await setDomainStatus(db, id!, 'verified', Date.now());
  await db('domains').where({ tracking_host: host }).update({ tracking_host: null });
  const own = await setHost(owner, 'owner.invalid');
  const late = await setHost(thief, 'sender.invalid');
  // The hosts of customers are read every ten seconds.
  await sleep(11_000);
  const { status, headers } = await ask(url + path, { headers: { host } });
  return verdict(
    `a host of nobody: ${early}; of its owner: ${own}; of another: ${late}; a link made before: ${status}`,
    [own === 200, 'the owner cannot have the host: nothing was measured'],
    [late !== 200, 'an organization has the host of another'],
    [headers.location === undefined, `a link of another organization leads to ${headers.location}`],
  );
}

export const handedOn: Attack[] = [
  { item: 13, name: 'calls held open by a key that is revoked', run: revokedKey },
  { item: 13, name: 'links at the host of another organization', timeoutMs: 60_000, run: foreignHost },
];

/**
 * The samples of an organization's pages (dashboard-samples.ts has the others, and says what a sample is). What a refused
 * request must not change is made so that it would change: each time anew, and in the state that the route ends.
 */

import { randomUUID } from 'node:crypto';
import { makeStream } from '#accounts/manage-streams.ts';
import { inviteMember } from '#accounts/people/team.ts';
import type { Sample, Sampler } from './dashboard-sample.ts';
import type { Org, Scene } from './dashboard-scene.ts';
import { samplePause } from './sample-pause.ts';

const nothing: Sampler = () => ({});

const keyId: Sampler = async ({ make }, { id }) => ({ params: { id: (await make.key(id)).id } });

const emailId: Sampler = (_scene, org) => ({ params: { id: org.emailId } });

const uniqueName = () => randomUUID();

const someNumber = () => `${100_000 + Math.floor(Math.random() * 1e6)}`;

/** Waits for its next attempt. */
async function waitingEmail({ make, settled }: Scene, org: Org): Promise<Sample> {
  const id = await make.email(org, `defer-${uniqueName()}@there.invalid`);
  await settled();
  return { params: { id } };
}

/** Is moved by the time of its form, which is another than its own. */
async function scheduledEmail({ make, world }: Scene, org: Org): Promise<Sample> {
  const at = (hours: number) => new Date(world.clock.now() + hours * 3_600_000).toISOString();
  const id = await make.email(org, `later-${uniqueName()}@there.invalid`, { scheduledAt: at(24) });
  return { params: { id }, fields: { at: at(48).slice(0, 16) } };
}

const ownDomain: Sampler = (_scene, org) => ({ params: { name: org.domain } });

const onDomain =
  (fields: Sample['fields'] = {}): Sampler =>
  async ({ make }, { id }) => ({ params: { name: await make.domain(id) }, fields });

const withNewKey: Sampler = async ({ make }, { id }) => {
  const name = await make.domain(id);
  await make.ed25519(name);
  return { params: { name } };
};

/** Receives mail, until the form says otherwise. */
const receivingDomain: Sampler = async ({ world, make }, { id }) => {
  const name = await make.domain(id);
  await world.db('domains').where({ org_id: id, name }).update({ receives: true });
  return { params: { name }, fields: {} };
};

const routeId: Sampler = async ({ make }, org) => ({ params: { id: await make.route(org, uniqueName()) } });

const receivedId: Sampler = (_scene, org) => ({ params: { id: org.receivedId } });

const suppressionId: Sampler = async ({ make }, { id }) => ({
  params: { id: (await make.suppression(id)).id },
});

const ownWebhook: Sampler = (_scene, org) => ({ params: { id: org.webhookId } });

const onWebhook =
  (fields: Sample['fields'] = {}): Sampler =>
  async ({ make }, { id }) => ({ params: { id: await make.webhook(id) }, fields });

const onMember =
  (fields: Sample['fields'] = {}): Sampler =>
  async ({ make }, { id }) => ({ params: { id: await make.member(id, 'viewer') }, fields });

/** An organization has ten at most, so those of earlier samples go. */
async function newStreamIn({ world: { db, clock } }: Scene, { id: orgId }: Org): Promise<{ stream: string }> {
  await db('streams').where({ org_id: orgId }).where('name', 'like', 'sample-%').delete();
  const name = `sample-${uniqueName().slice(0, 13)}`;
  await makeStream(db, { orgId, name }, clock.now());
  return { stream: name };
}

const onStream =
  (fields: Sample['fields'] = {}): Sampler =>
  async (scene, org) => ({ params: await newStreamIn(scene, org), fields });

export const orgSamples: Record<string, Sampler> = {
  'GET /dashboard/o/:org': nothing,

  'GET /dashboard/o/:org/emails': nothing,
  'GET /dashboard/o/:org/inbox': nothing,
  'POST /dashboard/o/:org/inbox/delete': nothing,
  'GET /dashboard/o/:org/emails/export': nothing,
  'GET /dashboard/o/:org/emails/:id': emailId,
  'GET /dashboard/o/:org/emails/:id/preview': emailId,
  'GET /dashboard/o/:org/emails/:id/source': emailId,
  'GET /dashboard/o/:org/emails/:id/attachments/:at': (_scene, org) => ({
    params: { id: org.emailId, at: '0' },
    status: 404,
  }),
  'POST /dashboard/o/:org/emails/:id/resend': emailId,
  'POST /dashboard/o/:org/emails/:id/cancel': waitingEmail,
  'POST /dashboard/o/:org/emails/:id/move': scheduledEmail,
  'GET /dashboard/o/:org/send-test': nothing,
  'POST /dashboard/o/:org/send-test': (_scene, { domain }) => ({
    fields: { local: 'app', domain, to: 'ann@there.invalid', subject: 'A test', text: 'Hello' },
    isNamedByField: true,
  }),

  'GET /dashboard/o/:org/statistics': nothing,
  'GET /dashboard/o/:org/statistics/export': nothing,
  'GET /dashboard/o/:org/sender-rules': nothing,
  'GET /dashboard/o/:org/usage': nothing,
  'POST /dashboard/o/:org/usage/grant': () => ({ fields: { amount: '5' } }),
  'POST /dashboard/o/:org/usage/quota': () => ({ fields: { quota: someNumber() } }),
  'POST /dashboard/o/:org/usage/limits': () => ({
    fields: { perSecond: 'unlimited', perDay: someNumber(), emailsPerDay: 'unlimited' },
  }),
  'POST /dashboard/o/:org/usage/pool': () => ({ fields: { pool: 'default' } }),

  'GET /dashboard/o/:org/domains': nothing,
  'POST /dashboard/o/:org/domains': () => ({ fields: { name: `${uniqueName()}.invalid` } }),
  'GET /dashboard/o/:org/domains/:name': ownDomain,
  'GET /dashboard/o/:org/domains/:name/records': ownDomain,
  'POST /dashboard/o/:org/domains/:name/check': onDomain(),
  'POST /dashboard/o/:org/domains/:name/rotate': onDomain(),
  'POST /dashboard/o/:org/domains/:name/rotate/cancel': withNewKey,
  'POST /dashboard/o/:org/domains/:name/ed25519': onDomain(),
  'POST /dashboard/o/:org/domains/:name/ed25519/end': withNewKey,
  'POST /dashboard/o/:org/domains/:name/tracking': onDomain({ opens: 'on', host: 'links.there.invalid' }),
  'POST /dashboard/o/:org/domains/:name/tls': onDomain({ tls: 'verified' }),
  'POST /dashboard/o/:org/domains/:name/receive': receivingDomain,
  'POST /dashboard/o/:org/domains/:name/remove': async ({ make }, { id }) => {
    const name = await make.domain(id);
    return { params: { name }, fields: { typed: name } };
  },

  'GET /dashboard/o/:org/received': nothing,
  'GET /dashboard/o/:org/received/:id': receivedId,
  'GET /dashboard/o/:org/received/:id/preview': receivedId,
  'GET /dashboard/o/:org/received/:id/source': receivedId,
  'GET /dashboard/o/:org/received/:id/attachments/:at': (_scene, org) => ({
    params: { id: org.receivedId, at: '0' },
  }),
  'GET /dashboard/o/:org/pauses': nothing,
  'POST /dashboard/o/:org/pauses/:id/release': async ({ world }, { id }) => ({
    params: { id: await samplePause(world.db, id, `sample-${uniqueName()}`, world.clock.now()) },
    fields: {},
  }),
  'GET /dashboard/o/:org/streams': nothing,
  'POST /dashboard/o/:org/streams': async (scene, org) => {
    await newStreamIn(scene, org);
    return { fields: { name: `sample-${uniqueName().slice(0, 13)}`, title: 'Sample', kind: 'subscribed' } };
  },
  'GET /dashboard/o/:org/streams/:stream': onStream(),
  'POST /dashboard/o/:org/streams/:stream': onStream({
    title: 'Another',
    kind: 'subscribed',
    emailsPerDay: '5',
    openTracking: '',
    clickTracking: 'on',
    color: '#123456',
  }),
  'POST /dashboard/o/:org/streams/:stream/remove': onStream(),
  'GET /dashboard/o/:org/routes': nothing,
  'POST /dashboard/o/:org/routes': (_scene, { domain }) => ({
    fields: { pattern: `${uniqueName()}@${domain}`, action: 'store' },
    isNamedByField: true,
  }),
  'GET /dashboard/o/:org/routes/:id': routeId,
  'POST /dashboard/o/:org/routes/:id': async ({ make }, org) => ({
    params: { id: await make.route(org, uniqueName()) },
    fields: { pattern: `${uniqueName()}@${org.domain}`, action: 'drop' },
  }),
  'POST /dashboard/o/:org/routes/:id/remove': routeId,

  'GET /dashboard/o/:org/suppressions': nothing,
  'POST /dashboard/o/:org/suppressions': () => ({ fields: { address: `${uniqueName()}@there.invalid` } }),
  'GET /dashboard/o/:org/suppressions/export': nothing,
  'GET /dashboard/o/:org/suppressions/import': nothing,
  'POST /dashboard/o/:org/suppressions/import': () => ({ fields: { list: `${uniqueName()}@there.invalid` } }),
  'GET /dashboard/o/:org/suppressions/:id': suppressionId,
  'POST /dashboard/o/:org/suppressions/:id/remove': suppressionId,

  'GET /dashboard/o/:org/webhooks': nothing,
  'POST /dashboard/o/:org/webhooks': () => ({
    fields: { url: `http://127.0.0.1:9/${uniqueName()}`, which: 'all' },
  }),
  'GET /dashboard/o/:org/webhooks/:id': ownWebhook,
  'GET /dashboard/o/:org/webhooks/:id/events': ownWebhook,
  'GET /dashboard/o/:org/webhooks/:id/events/:event': async ({ world }, { webhookId: id }) => {
    const { event_id: event } = await world.db('webhook_messages').where({ webhook_id: id }).first();
    return { params: { id, event } };
  },
  'POST /dashboard/o/:org/webhooks/:id/events': onWebhook({ which: 'some', events: 'email.delivered' }),
  'POST /dashboard/o/:org/webhooks/:id/enable': async ({ world, make }, { id }) => {
    const webhookId = await make.webhook(id);
    await world.db('webhooks').where({ id: webhookId }).update({ status: 'disabled' });
    return { params: { id: webhookId } };
  },
  'POST /dashboard/o/:org/webhooks/:id/disable': onWebhook(),
  'POST /dashboard/o/:org/webhooks/:id/rotate': onWebhook(),
  'POST /dashboard/o/:org/webhooks/:id/remove': onWebhook(),
  'POST /dashboard/o/:org/webhooks/:id/test': onWebhook(),
  'POST /dashboard/o/:org/webhooks/:id/replay': async ({ world, make }, { id }) => {
    const event = await world.db('events').where({ org_id: id }).first('id');
    return { params: { id: await make.webhook(id) }, fields: { event: event.id } };
  },

  'GET /dashboard/o/:org/team': nothing,
  'POST /dashboard/o/:org/team': () => ({
    fields: { email: `${uniqueName()}@there.invalid`, role: 'viewer' },
  }),
  'POST /dashboard/o/:org/team/second-factor': () => ({ fields: { required: 'no' } }),
  'POST /dashboard/o/:org/team/:id/role': onMember({ role: 'developer' }),
  'POST /dashboard/o/:org/team/:id/link': async ({ world, make }, { id }) => {
    const userId = await make.member(id, 'viewer');
    await world.db('users').where({ id: userId }).update({ password: null });
    return { params: { id: userId } };
  },
  'POST /dashboard/o/:org/team/:id/remove': onMember(),
  'POST /dashboard/o/:org/team/invitations/:id/remove': async ({ world }, { id: orgId }) => {
    const email = `${uniqueName()}@there.invalid`;
    const terms = { now: world.clock.now(), byOperator: false };
    await inviteMember(world.db, { orgId, email, name: email, role: 'viewer' }, terms);
    return { params: { id: (await world.db('invitations').where({ email }).first('id')).id } };
  },

  'GET /dashboard/o/:org/keys': nothing,
  'POST /dashboard/o/:org/keys': () => ({ fields: { label: 'new', scopes: 'email:send' } }),
  'POST /dashboard/o/:org/keys/:id/revoke': keyId,
  'POST /dashboard/o/:org/keys/:id/rotate': keyId,
  'GET /dashboard/o/:org/keys/:id/first-email': keyId,
};

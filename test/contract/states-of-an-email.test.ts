/** Section 3, which docs/api.md leaves to docs/design.md: states of a delivery and of an email, and what GET tells of them. */
import test, { type ExecutionContext } from 'ava';
import { cliOf } from '#lab/cli.ts';
import { until } from '#lab/until.ts';
import { isoForm, isSent } from './answer.ts';
import { openTenant, someone, type Tenant, turningWorld } from './client.ts';

let tenant: Tenant;
const world = turningWorld(async (made) => {
  tenant = await openTenant(made);
});

type Json = Record<string, unknown>;
const types = (events: { type: string }[]) => events.map(({ type }) => type);

async function record(who: Tenant, emailId: string, status: string, wait = until) {
  const last: { body?: unknown } = {};
  return wait(
    async () => {
      const { body } = await who.get(emailId);
      last.body = body;
      return body.status === status && body;
    },
    { what: () => `${status}; last: ${JSON.stringify(last.body)}` },
  );
}

/** Sends, and waits for the email's status. */
async function told(t: ExecutionContext, who: Tenant, to: string[], status: string) {
  const answer = await who.send({ to });
  isSent(t, answer, to);
  return record(who, answer.body.emailId, status);
}

// The record.

const memberNames = {
  email:
    'success emailId id status from to cc bcc replyTo subject tags tracking credits scheduledAt expiresAt createdAt updatedAt recipients events',
  recipient: 'address kind status attempts nextAttemptAt deliveredAt lastResponse mx tls opens clicks bounce',
  event: 'id type timestamp recipient data',
};
const has = (t: ExecutionContext, value: object, kind: keyof typeof memberNames) =>
  t.deepEqual(Object.keys(value).sort(), memberNames[kind].split(' ').sort(), kind);

test.serial(
  '3 GET: the members of an email, a recipient and an event; times are ISO 8601 UTC with milliseconds',
  async (t) => {
    const to = someone();
    const sent = await tenant.send({ to, replyTo: 'help@there.invalid', tags: { a: 'b' } });
    const email = await record(tenant, sent.body.emailId, 'delivered');
    has(t, email, 'email');
    const { createdAt, updatedAt, expiresAt, recipients, events, ...rest } = email;
    t.deepEqual(rest, {
      success: true,
      emailId: sent.body.emailId,
      id: sent.body.id,
      status: 'delivered',
      from: 'App <app@sender.invalid>',
      to: [to],
      cc: [],
      bcc: [],
      replyTo: 'help@there.invalid',
      subject: 'Hello',
      tags: { a: 'b' },
      tracking: { openTracking: false, clickTracking: false },
      credits: 1,
      scheduledAt: null,
    });
    for (const time of [createdAt, updatedAt, expiresAt]) t.regex(time, isoForm);
    t.is(recipients.length, 1);
    has(t, recipients[0], 'recipient');
    t.deepEqual(types(events), ['email.queued', 'email.delivered']);
    for (const event of events) {
      has(t, event, 'event');
      t.regex(event.timestamp, isoForm);
      t.is(event.recipient, to);
      t.is(typeof event.id, 'string');
      t.is(typeof event.data, 'object');
    }
    t.not(events[0].id, events[1].id);
  },
);

test.serial('3 GET: a recipient that was delivered', async (t) => {
  const to = someone();
  const email = await told(t, tenant, [to], 'delivered');
  const [{ deliveredAt, lastResponse, tls, ...rest }] = email.recipients;
  const untouched = { count: 0, firstAt: null, lastAt: null };
  t.deepEqual(rest, {
    address: to,
    kind: 'to',
    status: 'delivered',
    attempts: 1,
    nextAttemptAt: null,
    mx: { host: 'mx1.invalid', address: '127.0.0.2', port: world().mx[0]!.port },
    opens: untouched,
    clicks: untouched,
    bounce: null,
  });
  t.regex(deliveredAt, isoForm);
  t.deepEqual(Object.keys(lastResponse).sort(), ['code', 'enhanced', 'text']);
  t.is(lastResponse.code, 250);
  t.deepEqual(Object.keys(tls).sort(), ['cipher', 'group', 'policy', 'protocol', 'verified']);
  t.regex(tls.protocol, /^TLSv1\.[23]$/);
  t.is(tls.verified, false);
});

test.serial(
  '3 GET: what is not known is null; replyTo, tags and tracking where none were given',
  async (t) => {
    const email = await told(t, tenant, [someone('nowhere.invalid')], 'bounced');
    const [{ deliveredAt, nextAttemptAt, lastResponse, mx, tls }] = email.recipients;
    t.deepEqual(
      { deliveredAt, nextAttemptAt, lastResponse, mx, tls },
      { deliveredAt: null, nextAttemptAt: null, lastResponse: null, mx: null, tls: null },
    );
    t.is(email.replyTo, null);
    t.deepEqual(email.tags, {});
  },
);

test.serial('3 GET: recipients and to are in request order, as given', async (t) => {
  const to = ['Zoe', 'Ann', 'Moe'].map((name) => `${name}.${someone()}`);
  const email = await told(t, tenant, to, 'delivered');
  t.deepEqual(email.to, to);
  t.deepEqual(
    email.recipients.map(({ address }: Json) => address),
    to,
  );
});

// Moves.

test.serial('3 queued → sending → delivered', async (t) => {
  let release = () => {};
  const open = new Promise<void>((resolve) => {
    release = resolve;
  });
  world().mx[0]!.script = {
    rcpt: async () => {
      await open;
      return undefined;
    },
  };
  const { body } = await tenant.send();
  const sending = await record(tenant, body.emailId, 'sending');
  t.is(sending.recipients[0].status, 'sending');
  t.deepEqual(types(sending.events), ['email.queued']);
  release();
  world().mx[0]!.script = {};
  const email = await record(tenant, body.emailId, 'delivered');
  t.is(email.recipients[0].attempts, 1);
});

test.serial(
  '3 sending → deferred, next attempt time known → sending → delivered; an event is never changed, only added',
  async (t) => {
    const deferred = await told(t, tenant, ['greylist@there.invalid'], 'deferred');
    const [{ nextAttemptAt, lastResponse, deliveredAt, bounce }] = deferred.recipients;
    t.is(Date.parse(nextAttemptAt), world().clock.now() + 30_000);
    t.deepEqual([lastResponse.code, lastResponse.enhanced, deliveredAt, bounce], [451, '4.7.1', null, null]);
    await world().clock.advance('30s');
    const email = await record(tenant, deferred.emailId, 'delivered', world().clock.passUntil);
    t.is(email.recipients[0].attempts, 2);
    t.deepEqual(types(email.events), ['email.queued', 'email.deferred', 'email.delivered']);
    t.deepEqual(email.events.slice(0, 2), deferred.events);
    t.true(Date.parse(email.updatedAt) - Date.parse(email.createdAt) >= 30_000);
  },
);

test.serial('3 sending → bounced, permanent: type, category, fault, diagnostic', async (t) => {
  const email = await told(t, tenant, ['unknown@there.invalid'], 'bounced');
  const [{ bounce, lastResponse, nextAttemptAt, attempts }] = email.recipients;
  t.deepEqual(Object.keys(bounce).sort(), ['category', 'diagnostic', 'fault', 'type']);
  t.like(bounce, { type: 'hard', fault: 'recipient' });
  t.regex(bounce.diagnostic, /550 5\.1\.1/);
  t.deepEqual([lastResponse.code, lastResponse.enhanced, nextAttemptAt, attempts], [550, '5.1.1', null, 1]);
  t.deepEqual(types(email.events), ['email.queued', 'email.bounced']);
});

test.serial('3 sending → expired, older than the maximum age', async (t) => {
  const { emailId } = await told(t, tenant, ['tempfail@there.invalid'], 'deferred');
  await world().clock.jump('3d');
  const email = await record(tenant, emailId, 'expired', world().clock.passUntil);
  t.is(email.recipients[0].status, 'expired');
  t.is(email.recipients[0].nextAttemptAt, null);
  t.is(types(email.events).at(-1), 'email.expired');
});

test.serial(
  '3 suppressed, insufficient_credit: never queued; recorded so that the email tells the whole story',
  async (t) => {
    const own = await openTenant(world(), { quota: 1 });
    const [gone, paid, unpaid] = [someone(), someone(), someone()];
    await own.suppress(gone);
    const { body } = await own.send({ to: [gone, paid, unpaid] });
    const email = await record(own, body.emailId, 'partially_delivered');
    t.deepEqual(
      email.recipients.map(({ address, status, attempts }: Json) => [address, status, attempts]),
      [
        [gone, 'suppressed', 0],
        [paid, 'delivered', 1],
        [unpaid, 'insufficient_credit', 0],
      ],
    );
    t.is(email.credits, 1);
    const of = (recipient: string) =>
      types(email.events.filter((event: Json) => event.recipient === recipient));
    t.deepEqual(of(gone), ['email.suppressed']);
    t.deepEqual(of(paid), ['email.queued', 'email.delivered']);
    const got = world().mx[0]!.messages.flatMap(({ to }) => to);
    t.false(got.includes(gone) || got.includes(unpaid));
  },
);

// The status of an email.

test.serial('3 status: the recipients’ common state', async (t) => {
  t.is((await told(t, tenant, [someone(), someone()], 'delivered')).status, 'delivered');
  const nobodies = [someone('nowhere.invalid'), 'unknown+another@there.invalid'];
  t.is((await told(t, tenant, nobodies, 'bounced')).status, 'bounced');
});

test.serial('3 status: processing while any is not final', async (t) => {
  const email = await told(t, tenant, [someone(), 'tempfail@there.invalid'], 'processing');
  t.true(email.recipients.some(({ status }: Json) => status !== 'delivered'));
  const settled = await until(async () => {
    const { body } = await tenant.get(email.emailId);
    return body.recipients.map(({ status }: Json) => status).join() === 'delivered,deferred' && body;
  });
  t.is(settled.status, 'processing');
});

test.serial('3 status: partially_delivered if any was delivered', async (t) => {
  const email = await told(t, tenant, [someone(), someone('nowhere.invalid')], 'partially_delivered');
  t.deepEqual(
    email.recipients.map(({ status }: Json) => status),
    ['delivered', 'bounced'],
  );
});

test.serial('3 status: else failed', async (t) => {
  const gone = someone();
  const own = await openTenant(world());
  await own.suppress(gone);
  const { body } = await own.send({ to: [gone, someone('nowhere.invalid')] });
  const email = await record(own, body.emailId, 'failed');
  t.deepEqual(
    email.recipients.map(({ status }: Json) => status),
    ['suppressed', 'bounced'],
  );
});

test.serial(
  '3 a connection lost after the final dot and before the reply is deferred with possibleDuplicate: true on the attempt',
  async (t) => {
    const { emailId } = await told(t, tenant, ['drop-after-dot@there.invalid'], 'deferred');
    const shown = await cliOf(t, world()).json('email show', emailId);
    t.regex(JSON.stringify(shown), /"possibleDuplicate":true/);
  },
);

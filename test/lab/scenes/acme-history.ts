/** What happens to Acme's mail, hour by hour, and its state at the end: waiting, held, suspended, a host that is down. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTransport } from 'nodemailer';
import { addSuppression, suppressionOf } from '#accounts/rows/suppressions.ts';
import { createSeal } from '#accounts/seal.ts';
import { applyQueueAction } from '#mail/queue/rows/apply-queue-action.ts';
import { suspend } from '#mail/queue/rows/suspensions.ts';
import { sumUp } from '#mail/record/rows/statistics.ts';
import { createTrackingLinks } from '#mail/record/tracking/tracking-links.ts';
import { createReturnPath } from '#mail/returned/return-path.ts';
import { disabledByOwner } from '#mail/webhooks/endpoint-health.ts';
import { addWebhook } from '#mail/webhooks/endpoints.ts';
import { disableWebhook } from '#mail/webhooks/rows/webhooks.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import type { Stage } from '../load/stage.ts';
import { until } from '../until.ts';
import { type Acme, days } from './acme.ts';
import { acmeMail } from './acme-mail.ts';

const hourMs = 3_600_000;
const minuteMs = 60_000;

/** Rows that have a screenshot of their own. */
export interface ShownIds {
  emailId: string;
  webhookId: string;
}

export async function createHistory(stage: Stage, acme: Acme): Promise<ShownIds> {
  const { db, clock, orgId } = acme;
  const hooks = await startHooks(stage, acme);
  for (const [address, reason] of suppressed) {
    await addSuppression(db, suppressionOf(orgId, address, reason), clock.now());
    await clock.advance(minuteMs);
  }
  const end = clock.now() + days * 24 * hourMs;
  let sent = 0;
  for (let hour = 0; clock.now() < end - 2 * hourMs; hour++) {
    const amount = atHour[(hour + Math.floor(hour / 24)) % 24]! + (hour > 80 ? 1 : 0);
    const begun = clock.now();
    for (let n = 0; n < amount; n++) await send(acme, acmeMail(sent++));
    for (const addresses of failing[hour] ?? []) await send(acme, acmeMail(sent++, addresses));
    await advance(acme, 20_000);
    await advance(acme, 4 * minuteMs);
    await visit(acme, hour);
    if (hour === 12) await complain(acme);
    await advance(acme, begun + hourMs - clock.now());
  }
  hooks.breakDown();
  await lastHours(acme, sent, end);
  while ((await sumUp(db)) > 0);
  await clock.passUntil(
    async () => {
      const open = db('webhook_messages').where({ webhook_id: hooks.ids[0] }).whereNotNull('lane');
      return (await open).length === 0;
    },
    { step: 100 },
  );
  await hooks.rename();
  const last = await db('emails').whereLike('subject', 'Your order%').orderBy('id', 'desc');
  const clicked = await db('deliveries').where('click_count', '>', 0).orderBy('id', 'desc').pluck('email_id');
  return { emailId: last.find(({ id }) => clicked.includes(id)).id, webhookId: hooks.ids[0]! };
}

/** Mails per hour, over a day that begins at the hour at which the script runs. */
const atHour = [2, 1, 2, 3, 2, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 2, 2, 3, 4, 3, 3, 2];

/** Recipients whose mail fails, by the hour. */
const failing: Record<number, string[]> = {
  8: ['former.intern@council.example'],
  62: ['former.colleague@northmail.example'],
  101: ['spam.trap@postbox.example'],
  131: ['gina.former@fastpost.example'],
  156: ['former.member@university.example'],
  170: ['full.box@northmail.example'],
  181: ['old.friend@old-host.example', 'former.client@postbox.example'],
};

const suppressed = [
  ['no-more@northmail.example', 'manual'],
  ['archive@council.example', 'imported'],
  ['list-2019@postbox.example', 'imported'],
  ['front-desk@old-host.example', 'imported'],
  ['legal@university.example', 'manual'],
] as const;

/** Returns null if all recipients are suppressed by now. */
async function send({ url, key }: Acme, mail: object): Promise<string | null> {
  const response = await fetch(`${url}/api/public/email/send`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(mail),
  });
  const body = (await response.json()) as { emailId: string; error?: string };
  if (body.error === 'ALL_RECIPIENTS_SUPPRESSED') return null;
  if (!response.ok) throw new Error(`a send is answered ${response.status}: ${JSON.stringify(body)}`);
  return body.emailId;
}

/** Advances the clock and waits until everything that became due is done. */
async function advance(acme: Acme, ms: number): Promise<void> {
  await acme.clock.advance(Math.max(ms, 0));
  await settled(acme);
}

const maxTurns = 150;

/** Mail that its destination delays stays queued, so the wait is limited. */
async function settled({ db, clock }: Acme): Promise<void> {
  const none = async (table: string, condition: string) =>
    (await db(table).whereRaw(condition).limit(1)).length === 0;
  for (let turn = 0; turn < maxTurns; turn++) {
    // Runs the timers that are due now.
    await clock.advance(20);
    const isQuiet =
      (await none(
        'deliveries',
        "lease_owner is not null or (status = 'queued' and domain not in ('council.example', 'old-host.example'))",
      )) && (await none('webhook_messages', 'lease_owner is not null'));
    if (isQuiet) return;
    await sleep(5);
  }
}

const agents = [
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.6 Safari/605.1.15',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36',
];

/** Three of five recipients of the last half hour open their mail, and a third of them follow its link. */
async function visit({ db, clock, url, config }: Acme, hour: number): Promise<void> {
  const fresh = await db('deliveries')
    .where({ status: 'delivered', open_count: 0 })
    .where('delivered_at', '>', clock.now() - 30 * minuteMs)
    .select('id', 'org_id');
  const links = createTrackingLinks(loadSecrets(config));
  for (const [index, { id, org_id }] of fresh.entries()) {
    if ((index + hour) % 5 > 2) continue;
    await clock.advance(47_000);
    const { pixel, link } = links.tracker(url, org_id, id);
    const headers = { 'user-agent': agents[(index + hour) % agents.length]! };
    await fetch(pixel(), { headers });
    if ((index + hour) % 5 > 0) continue;
    await clock.advance(9_000);
    await fetch(link('https://example.com/account'), { headers, redirect: 'manual' });
  }
}

/** A complaint in the format of mailbox providers (RFC 5965). */
async function complain({ db, config }: Acme): Promise<void> {
  const { id } = await db('deliveries').where({ status: 'delivered' }).first('id');
  const path = createReturnPath(loadSecrets(config), config.returnPathDomain)(id);
  const parts = [
    'Content-Type: text/plain\r\n\r\nThis is an email abuse report.',
    `Content-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\nUser-Agent: Reports/1\r\nVersion: 1\r\nOriginal-Mail-From: <${path}>`,
    'Content-Type: text/rfc822-headers\r\n\r\nFrom: orders@example.com\r\nSubject: Your order',
  ];
  const head =
    'From: fbl@northmail.example\r\nSubject: Abuse report\r\nMIME-Version: 1.0\r\nContent-Type: multipart/report; report-type=feedback-report; boundary=b';
  const raw = `${head}\r\n\r\n--b\r\n${parts.join('\r\n--b\r\n')}\r\n--b--\r\n`;
  const transport = createTransport({ host: '127.0.0.1', port: config.inboundPort!, ignoreTLS: true });
  await transport.sendMail({ envelope: { from: '', to: [path] }, raw });
  await until(async () => (await db('suppressions').where({ reason: 'complaint' })).length > 0, {
    what: 'the complaint to be recorded',
  }).catch(() => {});
}

/** The last two hours. */
async function lastHours(acme: Acme, sent: number, end: number): Promise<void> {
  const { db, clock } = acme;
  const addresses = (...recipients: string[]) => recipients;
  let n = sent;
  for (const one of addresses('bea.old', 'carl.stein', 'office', 'press', 'info', 'sales'))
    await send(acme, acmeMail(n++, `${one}@old-host.example`));
  for (const one of addresses(
    'busy.desk@postbox.example',
    'busy.team@postbox.example',
    'full.up@northmail.example',
  ))
    await send(acme, acmeMail(n++, one));
  const dropped = await send(acme, acmeMail(n++, 'full.shelf@northmail.example'));
  await advance(acme, minuteMs);
  for (let minute = 0; minute < 40; minute += 4) await advance(acme, 4 * minuteMs);
  const mistake = { reason: 'sent by mistake', now: clock.now() };
  if (dropped) await applyQueueAction(db, { emailId: dropped }, { action: 'cancel', ...mistake });
  const held = { to: 'busy.team@postbox.example' };
  const hold = { action: 'hold', ...mistake, reason: 'waits for a word with the customer' } as const;
  for (let n = 0; n < 5 && (await applyQueueAction(db, held, hold)).changed === 0; n++)
    await advance(acme, minuteMs);
  const reason = 'their postmaster asked for a pause';
  await suspend(db, {
    destination: 'council.example',
    reason,
    createdAt: clock.now(),
    until: clock.now() + 6 * hourMs,
  });
  await advance(acme, 2 * minuteMs);
  for (const one of addresses('planning', 'mayor.office', 'archive'))
    await send(acme, acmeMail(n++, `${one}@council.example`)).catch(() => {});
  while (clock.now() < end - 3 * minuteMs) {
    await send(acme, acmeMail(n++));
    if (n % 3 === 0) await send(acme, acmeMail(n++));
    await advance(acme, 20_000);
    await advance(acme, 3 * minuteMs);
    await visit(acme, n);
  }
  await advance(acme, end - clock.now());
}

/** Three endpoints: one that works, one that breaks down, one that is switched off. */
async function startHooks(stage: Stage, { db, clock, orgId, config }: Acme) {
  const state = { isBroken: false };
  const serve = createServer((request, response) => {
    request.resume();
    if (state.isBroken && request.url === '/inbox') response.writeHead(503).end('upstream is away');
    else response.writeHead(200).end('thanks');
  });
  const server = await stage.start(listening(serve), async (it) => {
    it.closeAllConnections();
    it.close();
  });
  const { port } = server.address() as AddressInfo;
  const terms = { seal: createSeal(loadSecrets(config)), allowPrivate: true, now: clock.now() };
  const add = async (host: string, path: string, types: string[]) =>
    (await addWebhook(db, { orgId, url: `http://${host}:${port}${path}`, types }, terms)).webhook.id;
  const ids = [
    await add('hooks.example.com', '/postern', []),
    await add('crm.example.com', '/inbox', ['email.delivered', 'email.bounced', 'email.complained']),
    await add('hooks.example.com', '/staging', ['email.bounced']),
  ];
  await disableWebhook(db, ids[2]!, disabledByOwner, clock.now());
  return {
    ids,
    breakDown: () => {
      state.isBroken = true;
    },
    /** Public URLs instead of loopback ones; nothing is posted any more. */
    async rename() {
      for (const table of ['webhooks', 'webhook_attempts'])
        await db(table).update({
          url: db.raw("replace(replace(url, ?, ''), 'http:', 'https:')", [`:${port}`]),
        });
    },
  };
}

async function listening(server: Server): Promise<Server> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

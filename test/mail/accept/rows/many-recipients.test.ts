/**
 * An email for 1,000 recipients, the most that one may have inside: accepted in one commit on either database, with one
 * message for all, or with a copy for each if tracking makes them differ.
 */
import { createPrivateKey } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { setQuota } from '#accounts/rows/credit-ledger.ts';
import type { DomainRecord } from '#accounts/rows/domains-table.ts';
import { type DatabaseKind, kinds } from '#lab/database/databases.ts';
import { minute, now, openQueue } from '#lab/database/queue-rows.ts';
import { dkimKey } from '#lab/dkim.ts';
import { runs } from '#lab/runs.ts';
import { type AcceptParts, createAccept } from '#mail/accept/accept.ts';
import type { SendRequest } from '#mail/accept/requested-send.ts';
import { acceptAll } from '#mail/accept/rows/acceptance.ts';
import { composeMessages } from '#mail/compose/message.ts';
import { findEmail, readSources } from '#mail/record/rows/emails.ts';
import { searchEmails } from '#mail/record/rows/search-emails.ts';
import { addressesOf } from '#mail/record/telemetry.ts';
import { recipientsOf } from '#platform/values/recipients.ts';

const signer = {
  domain: 'sender.invalid',
  selector: dkimKey.selector,
  privateKey: createPrivateKey(dkimKey.privateKey),
};

const policy = { keepMs: 60 * minute, lowShare: 0.1 };
const count = 1000;
const people = (kind: string, length: number) =>
  Array.from({ length }, (_, n) => ({
    name: `Ännchen ${n}`,
    address: `${kind}-${n}@host-${n % 50}.invalid`,
  }));
const lists = { to: people('to', 400), cc: people('cc', 300), bcc: people('hidden', 300) };

const requestWith = (fields: Partial<SendRequest>): SendRequest => ({
  recipients: recipientsOf(lists),
  from: 'App <app@sender.invalid>',
  subject: 'Many',
  html: `<p><a href="https://there.invalid/">there</a></p>${'<p>Some text of the mail.</p>\r\n'.repeat(1000)}`,
  attachments: [],
  headers: {},
  tags: {},
  tracking: {},
  idempotency: null,
  requestId: 'r',
  ...fields,
});

async function ready(t: ExecutionContext, kind: DatabaseKind) {
  const { db, orgId } = await openQueue(t, kind);
  await db.transaction((trx) => setQuota(trx, orgId, 900, now));
  const domain = { name: 'sender.invalid', status: 'verified', tls: 'opportunistic', otherKeys: [] };
  let settled = 0;
  const parts: Partial<AcceptParts> = {
    findDomain: async () => domain as unknown as DomainRecord,
    domainNames: async () => [],
    async compose({ fields, tracking: { opens, clicks, deliveryIds } }) {
      const trackers = deliveryIds.map((id) => ({
        pixel: () => `https://t.invalid/${id}`,
        link: () => `https://t.invalid/${id}/1`,
      }));
      return composeMessages(fields, { opens, clicks, trackers }, signer);
    },
    trackingBase: () => 'https://t.invalid',
    commit: async (send) => (await acceptAll(db, [send], policy))[0]!,
    admit: () => ({
      startState: 'due',
      settle: (delivery) => {
        if (delivery) settled += 1;
      },
    }),
    onAccepted() {},
    clock: { now: () => now } as AcceptParts['clock'],
    messageIdOf: (id) => `${id}@sender.invalid`,
    feedbackIdOf: () => '',
    maxAgeMs: 60 * minute,
    node: 'node',
    leaseMs: minute,
  };
  const accept = createAccept(parts as AcceptParts);
  const send = (fields: Partial<SendRequest>) =>
    accept(requestWith(fields), { orgId, keyId: null, scopes: [] });
  return { db, orgId, send, settled: () => settled };
}

for (const kind of kinds) {
  // One after the other: composing takes the whole thread.
  test.serial(`${kind}: one message for a thousand recipients, in which no bcc is named`, async (t) => {
    const { db, orgId, send, settled } = await ready(t, kind);
    const { answer } = await send({});
    t.is(answer.accepted.length, 900);
    t.deepEqual(
      answer.insufficientCredit,
      lists.bcc.slice(200).map(({ address }) => address),
    );
    t.is(settled(), 900);
    const email = (await findEmail(db, answer.emailId, orgId))!;
    for (const list of ['to', 'cc', 'bcc'] as const)
      t.deepEqual(
        addressesOf(email, list),
        lists[list].map(({ address }) => address),
      );
    t.is((await searchEmails(db, { orgId, tags: {}, limit: 10 })).emails[0]!.recipients.length, count);
    const sources = await readSources(db, answer.emailId);
    t.is(sources.length, 1);
    const raw = sources[0]!.toString();
    t.true(raw.includes('<to-399@') && raw.includes('<cc-299@'));
    t.false(raw.includes('hidden'));
    t.true(raw.split('\r\n').every((line) => line.length <= 998));
  });

  test.serial(`${kind}: tracked copies for all are kept as their differences`, async (t) => {
    const { db, send } = await ready(t, kind);
    // Each is signed by itself, so a thousand take seconds.
    const recipients = recipientsOf(lists).slice(0, runs(900));
    const { answer } = await send({ recipients, tracking: { openTracking: true, clickTracking: true } });
    const [{ copies, bytes }] = await db('messages')
      .where({ email_id: answer.emailId })
      .select(db.raw('count(*) as copies, sum(length(raw)) as bytes'));
    t.is(Number(copies), recipients.length);
    const { size } = await db('messages').where({ email_id: answer.emailId }).first('size');
    t.true(Number(bytes) < recipients.length * 0.2 * size, `${bytes} bytes of copies of ${size}`);
  });
}

test('one recipient more is an error, and nothing is stored', async (t) => {
  const { db, send } = await ready(t, 'sqlite');
  const recipients = recipientsOf({ ...lists, bcc: people('hidden', 301) });
  await t.throwsAsync(send({ recipients }), { message: /failed to accept/ });
  t.deepEqual(await db('emails').pluck('id'), []);
});

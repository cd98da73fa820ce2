/** The acceptance and recording transactions that floor.ts measures, in batches of a hundred mails on a separate database. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startDns } from '#lab/dns/dns.ts';
import { createTenant, testConfig } from '#lab/scenes/world.ts';
import { attemptOf, sendOf } from '#lab/sends.ts';
import { acceptAll } from '#mail/accept/rows/acceptance.ts';
import { createTranscript } from '#mail/deliver/smtp-out/transcript.ts';
import { type Transition, transition } from '#mail/deliver/transition.ts';
import { recordAll } from '#mail/queue/rows/outcomes.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import { migrate } from '#platform/database/schema/migrate.ts';
import type { Send } from '#platform/database/tables/send-record.ts';
import type { Delivery } from '#platform/values/glossary.ts';
import { packMessage } from '#platform/values/packed-message.ts';

export interface FloorTransactions {
  /** Accepts this many sends. */
  accept(mails: number): Promise<void>;
  /** Records outcomes of sends that were accepted and not recorded yet. */
  record(mails: number): Promise<void>;
  close(): Promise<void>;
}

const batch = 100;
const node = 'floor';
const domain = 'there1.invalid';
const policy = { keepMs: 86_400_000, lowShare: 0.1 };

export async function openTransactions(directory: string, message: Buffer): Promise<FloorTransactions> {
  const dataDir = join(directory, 'floor');
  mkdirSync(dataDir);
  const dns = await startDns();
  const config = testConfig({ dataDir, databaseUrl: null, dns, mtaPort: 25 });
  const db = await openDatabase(config);
  await migrate(db);
  await createTenant(db, config, dns);
  await dns.close();
  return { ...(await transactionsOf(db, message)), close: () => db.destroy() };
}

/** `db` must have an organization with an API key. */
export async function transactionsOf(db: Db, message: Buffer): Promise<Omit<FloorTransactions, 'close'>> {
  const { id: keyId, org_id: orgId } = await db('api_keys').first('id', 'org_id');
  const accepted: Send[] = [];
  const packed = packMessage(message);
  return {
    async accept(mails) {
      for (let done = 0; done < mails; done += batch) {
        const sends = Array.from({ length: batch }, () => newSend(orgId, keyId, message, packed));
        await acceptAll(db, sends, policy);
        accepted.push(...sends);
      }
    },
    async record(mails) {
      for (let done = 0; done < mails; done += batch)
        await recordAll(db, node, accepted.splice(0, batch).map(transitionOf), []);
    },
  };
}

function newSend(orgId: string, keyId: string, raw: Buffer, packed: Buffer): Send {
  const now = Date.now();
  const send = sendOf(orgId, raw);
  const address = `${send.emailId}@${domain}`;
  return {
    ...send,
    keyId,
    messageId: `${send.emailId}@postern.invalid`,
    from: 'Shop <shop@sender.invalid>',
    subject: 'Your order 4711 has been sent',
    recipients: [{ ...send.recipients[0]!, address, key: address, domain }],
    packed,
    idempotency: { kind: 'window', key: send.emailId, requestHash: send.emailId },
    acceptedAt: now,
    expiresAt: now + 172_800_000,
    lease: { node, until: now + 300_000 },
  };
}

function transitionOf(send: Send): Transition {
  const [recipient] = send.recipients;
  const delivery: Delivery = {
    id: recipient!.deliveryId,
    emailId: send.emailId,
    orgId: send.orgId,
    messageId: send.messages[0]!.id,
    recipient: recipient!.address,
    domain: recipient!.domain,
    from: send.from,
    tags: {},
    attempts: 0,
    createdAt: send.acceptedAt,
    dueAt: send.acceptedAt,
    expiresAt: send.expiresAt,
    tls: send.tls,
  };
  return deliveredTransition(delivery);
}

/** The transition of a delivery that the first host accepts. */
function deliveredTransition(delivery: Delivery): Transition {
  const now = Date.now();
  const transcript = createTranscript(() => now);
  for (const line of dialogue) transcript.add(line.startsWith('2') ? 'server' : 'client', line);
  const attempt = {
    ...attemptOf({ outcome: 'delivered', diagnostic: '250 2.0.0 Ok' }, now),
    destination: 'mx.there1.invalid',
    reply: { code: 250, enhanced: '2.0.0', text: 'Ok' },
    mx: { host: 'mx.there1.invalid', address: '127.0.1.1', port: 25 },
    transcript: transcript.lines,
  };
  return transition(delivery, attempt, null);
}

const dialogue = [
  'MAIL FROM:<bounce+0123456789@postern.invalid> SIZE=4300',
  'RCPT TO:<somebody@there1.invalid>',
  'DATA',
  '250 2.1.0 Ok',
  '250 2.1.5 Ok',
  '250 2.0.0 Ok',
];

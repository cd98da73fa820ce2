/**
 * Makes the bodies of posts of `email.received`: reads the mail, and has the thread that reads messages write it. The bytes in
 * memory are bounded across all posts, and are counted before a mail is read.
 */

import { linksTo } from '#mail/received/received-links.ts';
import type { ReceivedMail } from '#mail/received/received-mail.ts';
import { findReceived, rawOf } from '#mail/received/rows/received-mails.ts';
import type { EventRecord } from '#mail/record/rows/read-events.ts';
import { mailgunSignature } from '#mail/webhooks/formats/mailgun-format.ts';
import type { Signing } from '#mail/webhooks/formats/webhook-format.ts';
import type { WebhookFormatName } from '#mail/webhooks/subscribed-types.ts';
import type { Clock } from '#platform/base/clock.ts';
import type { FileLinks } from '#platform/base/file-links.ts';
import { ByteBudget } from '#platform/base/limits/byte-budget.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { maxPostedMail, type PostBody } from './received-post.ts';
import type { ReceivedOrder } from './write-received.ts';

export interface ReceivedBodyParts {
  db: Db;
  links: FileLinks;
  /** Writes the body on a thread; null: the mail ended the thread. */
  write(orgId: string, raw: Buffer, order: ReceivedOrder): Promise<PostBody | null>;
  clock: Clock;
}

interface ReceivedBody extends PostBody {
  /** Called when the post has ended. */
  release(): void;
}

interface Wanted {
  url: string;
  format: WebhookFormatName;
  signing: Signing;
}

export type MakeReceivedBody = (event: EventRecord, wanted: Wanted) => Promise<ReceivedBody>;

/** The post was not tried for a reason of ours: it is tried again after its lease, and does not count against its endpoint. */
export class NotTried extends Error {}

const maxInMemory = 96 * 1024 * 1024;
const reservedForSmall = 16 * 1024 * 1024;
/** A post that waits this long for memory still ends within its lease. */
const maxWaitMs = 10_000;
/** A form of which every byte is escaped is three times as long as its mail, and the mail is there as well. */
const maxPerByte = 4;

export function createReceivedBodies({ db, links, write, clock }: ReceivedBodyParts): MakeReceivedBody {
  const budget = new ByteBudget({
    max: maxInMemory,
    reserve: reservedForSmall,
    ofOne: 'as many as are free',
    timeoutMs: maxWaitMs,
    clock,
  });
  return async ({ orgId, data }, { url, format, signing }) => {
    const mail = await findReceived(db, orgId, String(data.receivedId));
    if (!mail) throw new Error('the received mail has been deleted because of its age');
    const hold = budget.open(orgId);
    try {
      if (!(await hold.add(bytesFor(format, mail)))) throw new NotTried('no memory is free for the mail');
      const raw = await rawOf(db, orgId, mail.id);
      if (!raw) throw new Error('the received mail has been deleted because of its age');
      const order = {
        format,
        url,
        mail,
        links: linksTo(mail, links, clock.now()),
        signature: mailgunSignature(signing),
      };
      // A mail that ends the thread is posted like one that could not be parsed: it must not hold up those behind it.
      const body =
        (await write(orgId, raw, order)) ?? (await write(orgId, raw, { ...order, mail: unread(mail) }));
      if (!body) throw new Error('the mail could not be read');
      return { ...body, release: hold.release };
    } catch (error) {
      hold.release();
      throw error;
    }
  };
}

function unread(mail: ReceivedMail): ReceivedMail {
  return { ...mail, summary: { ...mail.summary, isReadable: false, attachments: [] } };
}

function bytesFor(format: WebhookFormatName, { size }: ReceivedMail): number {
  return format === 'raw' || size > maxPostedMail ? 2 * size : maxPerByte * size;
}

/** The evidence for a pause: the last mails that broke the rule, with the replies. Read once, when the pause begins. */

import { type PauseRuleName, ruleBrokenBy } from '#mail/record/auto-pause/pause-rules.ts';
import { iso } from '#platform/base/clock.ts';
import type { Trx } from '#platform/database/engine/open.ts';
import { isInGroup, type MailGroup } from '#platform/database/tables/mail-group.ts';
import { emails } from '#platform/database/tables/mail-tables.ts';
import type { Bounce } from '#platform/values/glossary.ts';

export interface EvidenceMail {
  emailId: string;
  recipient: string;
  at: string;
  /** What the recipient's server said; null for a complaint. */
  reply: string | null;
}

/** Of an organization's events, so many are read at most. */
const eventsRead = 5000;
const maxMails = 10;
const maxReply = 500;

const grouped = emails.pick('keyId', 'stream', 'tags', 'isTest');

export async function readEvidence(
  trx: Trx,
  orgId: string,
  group: MailGroup,
  rule: PauseRuleName,
): Promise<EvidenceMail[]> {
  const recent = trx('events')
    .where({ org_id: orgId })
    .orderBy('position', 'desc')
    .limit(eventsRead)
    .select('position', 'type', 'email_id', 'recipient', 'at', 'data');
  const rows = await trx(recent.as('recent'))
    .join('emails', 'emails.id', 'recent.email_id')
    .where({ type: rule === 'complaints' ? 'email.complained' : 'email.bounced' })
    .orderBy('position', 'desc')
    .select('email_id', 'recipient', 'at', 'data', ...grouped.columns);
  const mails: EvidenceMail[] = [];
  for (const row of rows) {
    const { bounce = null }: { bounce?: Bounce | null } = JSON.parse(row.data);
    if (!breaks(bounce, rule) || !isInGroup(group, grouped.read(row))) continue;
    const reply = bounce?.diagnostic.slice(0, maxReply) ?? null;
    mails.push({ emailId: row.email_id, recipient: row.recipient, at: iso(Number(row.at)), reply });
    if (mails.length === maxMails) break;
  }
  return mails;
}

function breaks(bounce: Bounce | null, rule: PauseRuleName): boolean {
  if (rule === 'complaints') return true;
  if (rule === 'hard_bounces') return bounce?.type === 'hard';
  return bounce !== null && ruleBrokenBy(bounce) === rule;
}

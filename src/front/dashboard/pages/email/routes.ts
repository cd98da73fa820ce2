import { suppressedAmong, suppressionKey } from '#accounts/rows/suppressions.ts';
import { itemIn } from '#front/dashboard/form-page.ts';
import { legible } from '#front/dashboard/legible.ts';
import { unlessCurrent, versionOf } from '#front/dashboard/live-fragment.ts';
import { exactly } from '#front/dashboard/number-format.ts';
import {
  type DashboardPage,
  type OrgVisit,
  type PageAnswer,
  type PageParts,
  redirect,
  show,
} from '#front/dashboard/page.ts';
import { send } from '#front/dashboard/sending.ts';
import { applyQueueAction, changeable } from '#mail/queue/rows/apply-queue-action.ts';
import { reschedule } from '#mail/queue/rows/scheduled-mail.ts';
import { type EmailRecord, findEmail } from '#mail/record/rows/emails.ts';
import { expiresAtOf } from '#mail/record/telemetry.ts';
import { iso } from '#platform/base/clock.ts';
import { newId } from '#platform/base/id.ts';
import { span } from '#platform/base/span.ts';
import { compareKey } from '#platform/values/address.ts';
import { recipientKinds } from '#platform/values/glossary.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { scheduledAtRefusal } from '#platform/values/send-times.ts';
import { readProgress } from './delivery-progress.ts';
import { resendRequest } from './resend.ts';
import { shownSource } from './shown-email.ts';
import { attachment, preview, source, withMessage } from './stored-message.ts';

type OnEmail = (visit: OrgVisit, parts: PageParts, email: EmailRecord) => PageAnswer | Promise<PageAnswer>;

const onEmail = (act: OnEmail) => async (visit: OrgVisit, parts: PageParts) =>
  act(visit, parts, await itemIn(visit, 'email', (id, orgId) => findEmail(parts.db, id, orgId)));

export const emailPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/emails/:id': onEmail(page),
    'GET /dashboard/o/:org/emails/:id/preview': onEmail(preview),
    'GET /dashboard/o/:org/emails/:id/source': onEmail(source),
    'GET /dashboard/o/:org/emails/:id/attachments/:at': onEmail(attachment),
    'POST /dashboard/o/:org/emails/:id/resend': onEmail(resend),
    'POST /dashboard/o/:org/emails/:id/cancel': onEmail(cancel),
    'POST /dashboard/o/:org/emails/:id/move': onEmail(move),
  },
};

async function page(visit: OrgVisit, parts: PageParts, email: EmailRecord): Promise<PageAnswer> {
  const { query, now, base } = visit;
  const progress = await readProgress(parts.db, email, now);
  const path = `${base}/emails/${email.id}`;
  const version = versionOf(progress, now);
  const shown = {
    ...progress,
    path,
    live: progress.intervalMs === null ? null : `${path}?part=deliveries&seen=${version}`,
  };
  if (query.get('part') === 'deliveries')
    return unlessCurrent(visit, version, 'email/deliveries', { ...shown, isPart: true });
  const content = await withMessage(visit, parts, email, async (raw) =>
    raw ? ((await parts.reading.shown(visit.org.id, raw, query.get('show'))) ?? shownSource(raw)) : null,
  );
  const data = {
    ...shown,
    content,
    email: presentEmail(email),
    waiting: email.deliveries.filter(({ status }) => changeable.cancel.includes(status)).length,
    scheduledTime: scheduledTimeOf(email),
    copies: copiesOf(email),
    suppressed: await suppressedOf(email, visit.org.id, parts.db),
    once: newId(),
    keep: span(parts.config.keepMessages),
    images: query.get('images') === '1',
    isNarrow: query.get('width') === 'phone',
  };
  return show('email/email', legible(email.subject), data, {
    scripts: ['live.js', ...(email.isTest ? ['unread.js'] : [])],
  });
}

function presentEmail(email: EmailRecord) {
  const { id, messageId, dialect, from, replyTo, subject, tags, tracking, credits, isTest } = email;
  const { createdAt, scheduledAt } = email;
  return {
    isTest,
    scheduledAt,
    expiresAt: expiresAtOf(email),
    id,
    messageId,
    dialect: dialect && dialectTitles[dialect],
    tracking,
    credits,
    createdAt,
    from: legible(from),
    replyTo: replyTo === null ? null : legible(replyTo),
    subject: legible(subject),
    count: email.deliveries.length,
    lists: listsOf(email),
    tags: Object.entries(tags).map((pair) => pair.map(legible)),
  };
}

/** Recipients that nothing is sent to any more, such as those that bounced. */
async function suppressedOf({ deliveries }: EmailRecord, orgId: string, db: PageParts['db']) {
  const pairs = deliveries.map(({ recipient }) => ({ orgId, addressKey: compareKey(recipient) }));
  const { suppressed } = await suppressedAmong(db, pairs);
  return deliveries
    .map(({ recipient }) => recipient)
    .filter((recipient) => suppressed.has(suppressionKey(orgId, compareKey(recipient))));
}

const dialectTitles = { resend: 'Resend', postmark: 'Postmark', sendgrid: 'SendGrid', mailgun: 'Mailgun' };

/** With display names, at most `maxListed` of each kind. */
function listsOf({ recipients, deliveries }: EmailRecord) {
  return recipientKinds.flatMap((kind) => {
    const own = deliveries.flatMap((delivery, index) =>
      delivery.kind === kind ? [recipients[index] ?? delivery.recipient] : [],
    );
    const title = { to: 'To', cc: 'Cc', bcc: 'Bcc' }[kind];
    const shown = own.slice(0, maxListed).map(legible);
    return own.length === 0 ? [] : [{ title, shown, others: own.length - shown.length }];
  });
}

const maxListed = 50;

/** With tracking, each recipient has a message of its own; empty if all share one. */
function copiesOf({ deliveries }: EmailRecord) {
  const ids = new Set(deliveries.flatMap(({ messageId }) => messageId ?? []));
  if (ids.size < 2) return [];
  return deliveries
    .filter(({ messageId }) => messageId !== null)
    .map(({ id, recipient }) => ({ id, address: legible(recipient) }));
}

/** The time of a scheduled email as its field shows it, in UTC; null if it cannot be moved. */
function scheduledTimeOf({ deliveries, scheduledAt }: EmailRecord): string | null {
  const isScheduled = deliveries.some(({ status }) => status === 'scheduled');
  return isScheduled && scheduledAt !== null ? iso(scheduledAt).slice(0, 'YYYY-MM-DDTHH:MM'.length) : null;
}

async function move(visit: OrgVisit, { db }: PageParts, email: EmailRecord): Promise<PageAnswer> {
  const { now, org, base, form } = visit;
  const here = `${base}/emails/${email.id}`;
  const at = Date.parse(`${form.get('at')}Z`);
  if (Number.isNaN(at) || scheduledAtRefusal(at, now))
    return redirect(here, { tone: 'bad', text: 'Choose a time in the future, at most 30 days ahead.' });
  const result = await reschedule(db, { emailId: email.id, orgId: org.id, at, now });
  return result === 'rescheduled'
    ? redirect(here, `The email is now scheduled for ${exactly(at)}.`)
    : redirect(here, { tone: 'bad', text: 'Its time has come: the email cannot be rescheduled any more.' });
}

async function resend(visit: OrgVisit, parts: PageParts, email: EmailRecord): Promise<PageAnswer> {
  const here = `${visit.base}/emails/${email.id}`;
  const gone = {
    tone: 'bad',
    text: 'The content of this email has been deleted, so it cannot be sent again.',
  } as const;
  const unreadable = {
    tone: 'bad',
    text: 'The content of this email cannot be read in ten seconds, so it cannot be sent again.',
  } as const;
  return withMessage(visit, parts, email, async (raw) => {
    if (!raw) return redirect(here, gone);
    const unsent = await parts.reading.unsent(visit.org.id, raw);
    if (!unsent) return redirect(here, unreadable);
    const { requestId } = visit.context.state;
    const once = visit.form.get('once') || newId();
    try {
      const { emailId } = await send(
        { orgId: visit.org.id, isTest: email.isTest },
        parts,
        resendRequest({ email, raw: unsent, once, requestId }),
        unsent.length,
      );
      return redirect(`${visit.base}/emails/${emailId}`, 'The email was sent again. This is the new email.');
    } catch (error) {
      if (!(error instanceof Refusal) || error.code === 'SEND_FAILED') throw error;
      return redirect(here, { tone: 'bad', text: `The email was not sent again. ${error.message}` });
    }
  });
}

async function cancel(visit: OrgVisit, { db }: PageParts, email: EmailRecord): Promise<PageAnswer> {
  const { user, now, org, base } = visit;
  const reason = `by ${user.name} in the dashboard`;
  const { changed, sending } = await applyQueueAction(
    db,
    { emailId: email.id, orgId: org.id },
    { action: 'cancel', reason, bySender: true, now },
  );
  const left =
    sending > 0
      ? ` ${sending === 1 ? 'One delivery is' : `${sending} deliveries are`} being sent right now; try again in a minute.`
      : '';
  const text =
    changed === 0
      ? `There was nothing left to cancel.${left}`
      : `Canceled for ${changed === 1 ? 'one recipient' : `${changed} recipients`}.${left}`;
  return redirect(`${base}/emails/${email.id}`, { tone: changed > 0 ? 'good' : 'bad', text });
}

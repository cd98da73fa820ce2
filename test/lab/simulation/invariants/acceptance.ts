/** What callers were promised: accepted mail is in the queue, each wanted mail is a mail, credits and limits are exact. */

import type { Mail } from '../book.ts';
import { scheduler } from '../machine/scheduler.ts';
import type { Check } from './check.ts';

const nothingAnsweredVanishes: Check = ({ scene, rows }) => {
  const kept = new Map<string, Set<string>>();
  for (const { email_id, recipient } of rows.deliveries())
    kept.set(email_id, (kept.get(email_id) ?? new Set()).add(recipient));
  for (const { answer, number } of scene.book.mails) {
    if (!answer?.emailId) continue;
    const recipients = kept.get(answer.emailId);
    const lost = answer.accepted.find((recipient) => !recipients?.has(recipient));
    if (lost)
      return { text: `${answer.emailId} was answered 200, and has no delivery for ${lost}`, mail: number };
  }
  return null;
};

/** The API ignores the same send within two seconds. */
const duplicatesMs = 4_000;

/** Two mails that were wanted are two mails, although they look alike. */
const everyWantedMailIsItsOwn: Check = ({ scene }) => {
  const owners = new Map<string, Mail>();
  for (const mail of scene.book.mails) {
    const emailId = mail.answer?.emailId;
    if (!emailId) continue;
    const other = owners.get(emailId);
    // Refused by a limit, both are repeated when it is over.
    if (other && Math.abs(mail.answer!.at - other.answer!.at) > duplicatesMs)
      return {
        text: `mail ${mail.number} was answered with ${emailId}, which is mail ${other.number}`,
        mail: mail.number,
      };
    owners.set(emailId, mail);
  }
  return null;
};

const aRepeatedCallSendsNothing: Check = ({ scene, isClockMoved }) => {
  if (isClockMoved) return null;
  for (const { answer, repeats, number } of scene.book.mails) {
    const other = repeats.find((emailId) => emailId !== answer?.emailId);
    if (other)
      return { text: `a call repeated with its key was answered with another email, ${other}`, mail: number };
  }
  return null;
};

const ledgerAddsUp: Check = ({ rows }) => {
  const [wrong] = rows.all<{ name: string; total: number; sum: number }>(
    `select name, ledger_total as total, coalesce((select sum(change) from credit_entries where org_id = organizations.id), 0) as sum
     from organizations where ledger_total <> coalesce((select sum(change) from credit_entries where org_id = organizations.id), 0)`,
  );
  return wrong
    ? { text: `the ledger of ${wrong.name} adds up to ${wrong.sum}, not to ${wrong.total}` }
    : null;
};

/** What an organization has paid for is what its emails cost. */
const creditsAreExact: Check = ({ rows }) => {
  const [wrong] = rows.all<{ name: string; spent: number; cost: number }>(
    `select name, quota_used as spent, (select coalesce(sum(credits), 0) from emails where org_id = organizations.id) as cost
     from organizations where quota_used <> (select coalesce(sum(credits), 0) from emails where org_id = organizations.id)`,
  );
  return wrong
    ? { text: `${wrong.name} has spent ${wrong.spent} credits on emails that cost ${wrong.cost}` }
    : null;
};

/** Only a recipient that was canceled before any attempt is refunded. */
const eachRecipientCostsOnce: Check = ({ rows }) => {
  const cost = `(select count(*) from deliveries where email_id = emails.id and status not in ('suppressed', 'insufficient_credit')
     and not (status = 'canceled' and attempts = 0))`;
  const [wrong] = rows.all<{ id: string; credits: number; cost: number }>(
    `select id, credits, ${cost} as cost from emails where credits <> ${cost}`,
  );
  return wrong
    ? { text: `${wrong.id} cost ${wrong.credits} credits, not ${wrong.cost}`, emailId: wrong.id }
    : null;
};

const dailyLimitHolds: Check = ({ rows }) => {
  const [wrong] = rows.all<{ name: string; day: string; emails: number }>(
    `select name, day, emails from daily_usage join organizations on id = org_id where emails > emails_per_day`,
  );
  return wrong ? { text: `${wrong.name} sent ${wrong.emails} on ${wrong.day}, more than its limit` } : null;
};

const canceledMailIsNotSent: Check = ({ scene }) => {
  for (const { canceled, canceledAt, number } of scene.book.mails)
    for (const recipient of canceled) {
      const late = scene.book.copiesOf(number, recipient).find(({ at }) => at > canceledAt!);
      if (late) return { text: `${late.host} took it for ${recipient} after it was canceled`, mail: number };
    }
  return null;
};

/** Nothing is half done: what every answer refused has no copy. */
const whatIsRefusedIsNotSent: Check = ({ scene }) => {
  for (const { answer, wasRefused, doubts, number, recipients } of scene.book.mails) {
    if (answer || !wasRefused || doubts > 0) continue;
    const sent = recipients.find((recipient) => scene.book.copiesOf(number, recipient).length > 0);
    if (sent) return { text: `every call was refused, and a host took it for ${sent}`, mail: number };
  }
  return null;
};

const everyCallIsAnswered: Check = ({ scene, calmMs }) => {
  const late = scene.book.unanswered.find(({ at }) => at > scheduler.now - calmMs + 2 * 60_000);
  return late ? { text: 'a call got no answer although nothing was wrong', mail: late.mail } : null;
};

export const acceptance = {
  everyCallIsAnswered,
  whatIsRefusedIsNotSent,
  nothingAnsweredVanishes,
  everyWantedMailIsItsOwn,
  aRepeatedCallSendsNothing,
  ledgerAddsUp,
  creditsAreExact,
  eachRecipientCostsOnce,
  dailyLimitHolds,
  canceledMailIsNotSent,
};

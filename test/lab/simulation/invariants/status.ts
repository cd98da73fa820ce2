/**
 * `postern status` names what is wrong within a minute of the first mail that met it, names nothing else, and is silent two
 * minutes after a host there has taken a mail again. It cannot know earlier: only mail shows what is wrong, and that it is over.
 */

import { reserveOf } from '#mail/deliver/warm-up-plan.ts';
import type { Cause } from '#operate/condition/causes.ts';
import type { Need } from '#operate/status/need.ts';
import { verdictText } from '#operate/status/read-status.ts';
import { scheduler } from '../machine/scheduler.ts';
import type { Domain } from '../scene.ts';
import type { Check, Checked, HappenedFault } from './check.ts';

const minute = 60_000;
const namedAfterMs = minute;
const silentAfterMs = 2 * minute;
/** Mails of the first day of an address that is new to receivers, after which status names it. */
const firstDaysAllowance = 100 - reserveOf(100);

const noConnection: Cause[] = ['unreachable', 'hanging', 'no_route', 'no_way_out'];
const noAnswer: Cause[] = ['dns_failing', 'resolver_failing', 'no_way_out'];
const badConnection: Cause[] = ['unreachable', 'hanging', 'slow', 'no_way_out'];

/** The words for each fault that status can see. */
const causesOf: Record<string, Cause[]> = {
  'port 25 shut': noConnection,
  'host away': noConnection,
  'bad link': badConnection,
  'silent link': badConnection,
  'dns silent': noAnswer,
  'dns servfail': noAnswer,
  'dns lies': noAnswer,
  'resolver silent': noAnswer,
  'resolver servfail': noAnswer,
  greylisting: ['greylisting'],
  throttling: ['throttled'],
  tarpit: ['slow', 'hanging'],
  'no reply to the mail': ['unreachable'],
  'hang up after the dot': ['unreachable'],
  'full host': ['storage_full', 'throttled'],
  'host closed': ['throttled', 'refusing', 'unreachable'],
  'silent host': ['hanging', 'unreachable', 'no_way_out'],
  'host refuses all': ['refusing', 'blocklisted'],
};
/** Each attempt fails while they last. */
const certain = [
  'port 25 shut',
  'host away',
  'dns servfail',
  'dns silent',
  'full host',
  'host closed',
  'silent host',
];

const concerns = ({ domain }: HappenedFault, { name }: Domain) => domain === null || domain === name;
const namesDomain = ({ subject, cause }: Need, { name }: Domain) =>
  subject.includes(name) || cause === 'no_way_out';

/** Its mail may wait for other hosts than those that failed. */
const hasMoved = (faults: HappenedFault[], domain: Domain) =>
  faults.some((fault) => ['dns lies', 'host moves'].includes(fault.name) && concerns(fault, domain));

/** A fault lasts until a host there has taken a mail, and two minutes more. */
function maySee(checked: Checked, fault: HappenedFault, domain: Domain): boolean {
  const { endedAt } = fault;
  if (!concerns(fault, domain)) return false;
  if (endedAt === null) return true;
  const takenAt = checked.scene.book.takenAt.get(domain.name) ?? Number.NEGATIVE_INFINITY;
  return takenAt < endedAt || takenAt > scheduler.now - silentAfterMs;
}

const statusNamesNothingElse: Check = (checked) => {
  const { status, scene, rows, faults, isClockMoved } = checked;
  if (!status || isClockMoved) return null;
  // Organizations have needs of their own: bounces, credits, a webhook that was switched off.
  const needs = [...status.needs, ...status.folded].filter(({ orgId }) => orgId === undefined);
  for (const need of needs) {
    const domains = scene.domains.filter((domain) => namesDomain(need, domain));
    const explains = (fault: HappenedFault) =>
      (causesOf[fault.name] ?? []).includes(need.cause) &&
      domains.some((domain) => maySee(checked, fault, domain));
    // A limit that was lowered is raised by mail only.
    const isLimit =
      need.cause === 'throttled' && faults.some(({ name }) => causesOf[name]?.includes('throttled'));
    const isNewAddress = need.cause === 'warm_up' && rows.count('attempts') >= firstDaysAllowance;
    if (!isLimit && !isNewAddress && !faults.some(explains))
      return { text: `status names ${need.cause} of ${need.subject}: ${need.figure}` };
  }
  return null;
};

/** A process that has just started knows nothing yet. */
const statusNamesTheFault: Check = ({ scene, rows, status, faults, wellMs, isClockMoved }) => {
  if (!status || isClockMoved || wellMs < 2 * minute) return null;
  const open = faults.filter(({ name, endedAt }) => endedAt === null && certain.includes(name));
  for (const fault of open)
    for (const domain of scene.domains.filter((one) => concerns(fault, one) && !hasMoved(faults, one))) {
      const ahead = scene.serviceTime - scheduler.now;
      const [failed] = rows.all<{ email_id: string; recipient: string }>(
        `select email_id, recipient from deliveries join attempts on delivery_id = deliveries.id
         where status = 'deferred' and domain = ? and started_at > ? and ended_at < ? and recipient not like '%-quota@%' limit 1`,
        domain.name,
        fault.begunAt + ahead,
        Math.floor(scene.serviceTime - namedAfterMs),
      );
      const isNamed = [...status.needs, ...status.folded].some((need) => namesDomain(need, domain));
      if (failed && !isNamed && status.orders.length === 0)
        return {
          text: `mail for ${failed.recipient} fails by ${fault.name}, and status says: ${verdictText(status)}`,
          emailId: failed.email_id,
        };
    }
  return null;
};

export const status = { statusNamesNothingElse, statusNamesTheFault };

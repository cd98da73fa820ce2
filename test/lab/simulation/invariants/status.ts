/** `postern status` names what is wrong, and nothing else. */
import type { Need } from '#operate/status/need.ts';
import { verdictText } from '#operate/status/read-status.ts';
import type { Check } from './check.ts';

const minute = 60_000;
/** A circuit probes at least this often, and so learns that a fault is over. */
const calmForMs = 20 * minute;
/** By then a destination that cannot be reached has failed more than once. */
const namedAfterMs = 15 * minute;
const unreachable = ['host away', 'port 25 shut', 'silent host', 'host closed', 'dns servfail', 'dns silent'];

const statusIsSilentWhenAllIsWell: Check = ({ status, calmMs, isClockMoved }) => {
  if (!status || calmMs < calmForMs || isClockMoved) return null;
  // Organizations have needs of their own (bounces, a webhook that was switched off), and bounces of the last hour are news.
  // A limit that was lowered is raised by mail only, and a single mail to a full mailbox does not raise it.
  const isPast = ({ orgId, traffic, cause }: Need) =>
    orgId !== undefined || traffic?.waiting === 0 || (cause === 'throttled' && (traffic?.waiting ?? 0) <= 2);
  const wrong = [...status.needs, ...status.folded].filter((need) => !isPast(need));
  return wrong[0]
    ? { text: `status names ${wrong[0].cause} of ${wrong[0].subject}: ${wrong[0].figure}` }
    : null;
};

/** A process that has just started knows nothing yet. */
const statusNamesTheFault: Check = ({ scene, rows, status, openForMs, wellMs, isClockMoved }) => {
  if (
    !status ||
    isClockMoved ||
    wellMs < namedAfterMs ||
    !unreachable.some((name) => openForMs(name) > namedAfterMs)
  )
    return null;
  if (status.needs.length > 0 || status.orders.length > 0) return null;
  const since = scene.serviceTime - namedAfterMs;
  const [failed] = rows.all<{ recipient: string }>(
    `select recipient from deliveries join attempts on delivery_id = deliveries.id
     where status = 'deferred' and started_at > ? and recipient not like '%-quota@%' group by delivery_id having count(*) > 1`,
    since,
  );
  return failed
    ? { text: `mail for ${failed.recipient} fails, and status says: ${verdictText(status)}` }
    : null;
};

export const status = { statusIsSilentWhenAllIsWell, statusNamesTheFault };

/**
 * Whether a destination refuses us because of a blocklist, by its own replies to the running server. It is the only evidence if
 * the lists cannot be asked, as with a public resolver (blocklists.ts), and the only one at all for a receiver's own list.
 */
import { readDestinationStatuses } from '#mail/record/rows/destination-status-rows.ts';
import type { DoctorContext } from '#operate/doctor/doctor-context.ts';
import { type FindingDraft, failure, ok, skipped } from '#operate/doctor/finding.ts';
import { blocklistAdvice } from '#operate/explain/blocklist-advice.ts';
import { isServed } from '#platform/database/tables/server-running.ts';

const maxNamed = 3;

export async function checkBlocklistReplies({ openDb, now, config }: DoctorContext): Promise<FindingDraft> {
  const db = await openDb().catch(() => null);
  if (db === null) return skipped('not known: the database cannot be read');
  const statuses = await isServed(db, config.dataDir)
    .then((served) => readDestinationStatuses(db, now(), served))
    .catch(() => null);
  if (statuses === null) return skipped('not known: the database is not up to date');
  const refusing = [...statuses.states].flatMap(([name, { problem }]) =>
    problem?.cause === 'blocklisted' ? [{ name, problem }] : [],
  );
  const [first] = refusing;
  if (!first)
    return statuses.isServed ? ok('no destination names one') : skipped('not known: no server is running');
  const named = refusing.slice(0, maxNamed).map(({ name, problem }) => `${name}: "${problem.reply}"`);
  const more = refusing.length > maxNamed ? ` and ${refusing.length - maxNamed} more` : '';
  const { reply: text, host } = first.problem;
  const advice = blocklistAdvice({ text, host, senderDomain: config.returnPathDomain }, '');
  return failure(`refused by ${named.join('; ')}${more}`, advice.trim());
}

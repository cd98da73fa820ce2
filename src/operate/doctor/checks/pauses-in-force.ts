/** The auto-pauses in force, of all organizations: mail that they hold looks like mail that is not delivered. */
import { listPauses, pauseTitle } from '#mail/record/auto-pause/rows/auto-pauses.ts';
import { type FindingDraft, ok, skipped, warning } from '#operate/doctor/finding.ts';
import type { OpenDb } from './database.ts';

const maxNamed = 3;
const maxRead = 100;

export async function checkAutoPauses(openDb: OpenDb): Promise<FindingDraft> {
  const db = await openDb().catch(() => null);
  const pauses = db && (await listPauses(db, maxRead).catch(() => null));
  if (!pauses) return skipped('not known: the database cannot be read');
  const held = pauses.filter(({ state }) => state === 'held');
  if (held.length === 0) return ok('no rule holds mail');
  const named = held.slice(0, maxNamed).map((pause) => `${pauseTitle(pause)} of ${pause.orgName}`);
  const more = held.length > maxNamed ? ` and ${held.length - maxNamed} more` : '';
  const advice = `See why with \`postern pause show ${held[0]!.id}\`, stop the cause, then release it.`;
  return warning(`held by a rule: the mail of ${named.join(', ')}${more}`, advice);
}

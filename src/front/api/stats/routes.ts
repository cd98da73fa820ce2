/** GET /api/public/stats: what became of the mail, by group. */

import { dayOf } from '#accounts/limits.ts';
import { answer, resource } from '#front/api/management.ts';
import { type Days, figuresBy } from '#mail/record/figures-by-group.ts';
import { quantile } from '#mail/record/latency.ts';
import { type GroupFigures, theRest } from '#mail/record/rows/group-statistics.ts';
import { complaintRate, hardBounceRate } from '#operate/status/reputation.ts';
import { statsQuery, statsSchemas } from './schema.ts';

export const statsEndpoints = [
  resource('Statistics').collection({
    route: 'GET /stats',
    operationId: 'getStats',
    summary: 'Show statistics by group',
    description:
      'What became of the mail of some days, by the recipient’s domain, its provider, tag, sender, key, stream, or reason of a bounce. ' +
      'Each recipient counts on the UTC day of the event. Test mail is not counted.',
    query: statsQuery,
    response: answer('The figures.', statsSchemas.Stats),
    async respond({ db, orgId, query: { by, since, until }, now }) {
      const days = wholeDays(now, since, until);
      const groups = await figuresBy(db, orgId, by, days);
      return { by, since: dayOf(days.since), until: dayOf(days.until), groups: groups.map(present) };
    },
  }),
];

const dayMs = 86_400_000;

/** Each day that has a part in the time is whole. */
function wholeDays(now: number, since: number | undefined, until = now + 1): Days {
  const end = Math.ceil(until / dayMs) * dayMs;
  const begin = since ?? end - 30 * dayMs;
  return { since: begin - (begin % dayMs), until: end };
}

function present({ name, hard, took, ...counts }: GroupFigures) {
  return {
    name: name === theRest ? null : name,
    ...counts,
    hardBounced: hard,
    hardBounceRate: hardBounceRate({ ...counts, hard }).share,
    complaintRate: complaintRate(counts).share,
    p50Ms: millisecondsOf(quantile(took, 0.5)),
    p95Ms: millisecondsOf(quantile(took, 0.95)),
  };
}

const millisecondsOf = (found: ReturnType<typeof quantile>) => found && Math.round(found.ms);

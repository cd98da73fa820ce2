/**
 * How the service is doing: one verdict, and what needs a person, the most urgent first. The command line, `top` and the
 * dashboard show the same. The cost does not grow with the mail that waits: it reads the published states of destinations,
 * small tables and the statistics of a day, and counts mail only for what it lists, up to a limit.
 */
import { iso, isoOrNull } from '../../base/clock.ts';
import type { Config } from '../../config.ts';
import type { Db } from '../../db/engine/open.ts';
import { readDestinationStatuses } from '../../db/queue/destination-status-rows.ts';
import { paceDocument } from '../explain/pace.ts';
import { readDestinationNeeds } from './destination-needs.ts';
import { type Need, ranked } from './need.ts';
import { readOrganizationNeeds } from './organization-needs.ts';
import { readServerNeeds } from './server-needs.ts';

export interface Status {
  at: number;
  /** Whether a server is running that sends mail. */
  isServed: boolean;
  needs: Need[];
  /** Destinations in trouble that are not listed. */
  more: number;
}

export interface StatusParts {
  db: Db;
  config: Config;
  now: number;
  /** Whether a server that sends is running, if the caller knows. */
  served?: boolean;
}

export async function readStatus({ db, config, now, served }: StatusParts): Promise<Status> {
  const statuses = await readDestinationStatuses(db, now, served);
  const server = await readServerNeeds({ db, config, statuses, now });
  const { needs, more } = await readDestinationNeeds(db, statuses, now);
  const organizations = await readOrganizationNeeds(db, now);
  return {
    at: now,
    isServed: statuses.isServed,
    needs: ranked([...server, ...needs, ...organizations]),
    more,
  };
}

export function isWell({ needs }: Pick<Status, 'needs'>): boolean {
  return needs.every(({ severity }) => severity === 'watch');
}

/** The verdict as a sentence. */
export function verdictText({ needs, more }: Pick<Status, 'needs' | 'more'>): string {
  const act = needs.filter(({ severity }) => severity === 'act').length;
  const watch = needs.length - act + more;
  const rest = watch === 0 ? '' : `${act > 0 ? '; ' : ', '}${watch}${act > 0 ? ' more' : ''} to watch`;
  if (act === 0) return `Nothing needs a person${rest}.`;
  return `${act} ${act === 1 ? 'thing needs' : 'things need'} a person${rest}.`;
}

export function statusDocument(status: Status) {
  return {
    verdict: isWell(status) ? 'well' : 'needs_attention',
    summary: verdictText(status),
    at: iso(status.at),
    isServed: status.isServed,
    needs: status.needs.map(needDocument),
    more: status.more,
  };
}

function needDocument({ cause, severity, subject, since, figure, command, advice, reply, traffic }: Need) {
  return {
    cause,
    severity,
    subject,
    since: isoOrNull(since),
    figure,
    command,
    advice,
    reply,
    waiting: traffic?.waiting ?? null,
    ...paceDocument(traffic ?? { perMinute: null, drainMs: null }),
  };
}

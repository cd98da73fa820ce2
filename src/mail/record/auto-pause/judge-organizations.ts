/**
 * Judges organizations by the rules (pause-rules.ts) when their mail has been counted, in the transaction that counts it
 * (mail/record/rows/statistics.ts): so each event is judged once, by one node, and nothing looks at mail that nothing has happened
 * to. Organizations with hardly a failure cost one statement for each thousand events, whatever their number.
 *
 * A reply of which one is enough must be that of a host in a session: a person who has seen a return path can write one.
 */

import { lockOrganization } from '#accounts/rows/organizations.ts';
import type { CountedEvents } from '#mail/record/counts.ts';
import type { Trx } from '#platform/database/engine/open.ts';
import { isInGroup } from '#platform/database/tables/mail-group.ts';
import {
  type Breach,
  breachesIn,
  type CountedGroup,
  groupToBlame,
  type PauseMode,
  ruleBrokenBy,
} from './pause-rules.ts';
import { beginPause, pausesOf } from './rows/auto-pauses.ts';
import { judgedSince, readCountedGroups } from './rows/read-counted-groups.ts';
import { readSuspects } from './rows/read-suspects.ts';

/** `defaultMode`: of organizations that have none of their own. */
export function createPauseJudge(defaultMode: PauseMode, clock: () => number) {
  return async (trx: Trx, events: CountedEvents[]): Promise<void> => {
    const now = clock();
    const telling = Map.groupBy(
      events.filter(
        ({ bounce, isReturned }) => !isReturned && bounce !== null && ruleBrokenBy(bounce) !== null,
      ),
      ({ org_id }) => org_id,
    );
    const terms = { defaultMode, since: judgedSince(now), telling: new Set(telling.keys()) };
    const suspects = await readSuspects(trx, new Set(events.map(({ org_id }) => org_id)), terms);
    for (const { orgId, mode } of suspects)
      await judge(trx, { orgId, mode, telling: telling.get(orgId) ?? [], now });
  };
}

interface Suspect {
  orgId: string;
  mode: PauseMode;
  /** Bounces of which one is enough. */
  telling: CountedEvents[];
  now: number;
}

async function judge(trx: Trx, suspect: Suspect): Promise<void> {
  if ((await breachesOf(trx, suspect)).length === 0) return;
  // Read again: somebody may have released a group meanwhile.
  const { orgId, mode, now } = suspect;
  if ((await lockOrganization(trx, orgId)) === null) return;
  for (const breach of await breachesOf(trx, suspect)) {
    const org = await lockOrganization(trx, orgId);
    await beginPause(trx, org!, breach, { isHeld: mode === 'hold', now });
  }
}

async function breachesOf(trx: Trx, { orgId, mode, telling, now }: Suspect): Promise<Breach[]> {
  const known = await pausesOf(trx, orgId);
  const { groups, all } = await readCountedGroups(trx, orgId, { known, mode, now });
  const breaches = breachesIn(groups, all);
  for (const event of telling) {
    const breach = blamedFor(event, groups);
    if (!breach) continue;
    const same = ({ group }: Breach) => group.kind === breach.group.kind && group.name === breach.group.name;
    if (!breaches.some(same)) breaches.push(breach);
  }
  return breaches;
}

/** Null if the mail is of a group that is held, or warned of, already. */
function blamedFor(
  { key_id, stream, tags, bounce, count }: CountedEvents,
  groups: CountedGroup[],
): Breach | null {
  const mail = { keyId: key_id, stream, tags: JSON.parse(tags ?? '{}'), isTest: false };
  const own = groups.filter((group) => isInGroup(group, mail));
  const group = own.some(({ isSettled }) => isSettled) ? undefined : groupToBlame(own);
  if (!group) return null;
  const { kind, name, delivered, bounced } = group;
  return { group: { kind, name }, rule: ruleBrokenBy(bounce!)!, count, of: delivered + bounced };
}

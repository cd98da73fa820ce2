import { lockOrganization } from '#accounts/rows/organizations.ts';
import { beginPause, pausesOf } from '#mail/record/auto-pause/rows/auto-pauses.ts';
import type { Db } from '#platform/database/engine/open.ts';

/** The mail of a stream is held, as the rules do it; returns the id of the pause. */
export async function samplePause(db: Db, orgId: string, stream: string, now: number): Promise<string> {
  await db.transaction(async (trx) => {
    const org = await lockOrganization(trx, orgId);
    const group = { kind: 'stream', name: stream } as const;
    await beginPause(trx, org!, { group, rule: 'complaints', count: 4, of: 1000 }, { isHeld: true, now });
  });
  return (await pausesOf(db, orgId)).find(({ name }) => name === stream)!.id;
}

/**
 * `node accept-large.ts DATA_DIR ORG_ID`: accepts mails of 1 MB, sixty in one transaction, until one fails; then one
 * by one, until one fails. A process of its own, because the limit of its files is (`ulimit -f`).
 */
import { acceptAll } from '#mail/accept/rows/acceptance.ts';
import { openDatabase } from '#platform/database/engine/open.ts';
import { minute } from './database/queue-rows.ts';
import { sendOf } from './sends.ts';

const [dataDir, orgId] = process.argv.slice(2) as [string, string];
const db = await openDatabase({ dataDir, databaseUrl: null });
const policy = { keepMs: 60 * minute, lowShare: 0.1 };
const raw = Buffer.alloc(1_000_000, 'x');

for (const atOnce of [60, 1]) {
  let taken = 0;
  try {
    for (;;) {
      const sends = Array.from({ length: atOnce }, () => sendOf(orgId, raw));
      const decisions = await acceptAll(db, sends, policy);
      for (const decision of decisions) if ('refused' in decision) throw new Error(decision.refused);
      taken += atOnce;
    }
  } catch (error) {
    console.log(JSON.stringify({ taken, error: String(error) }));
  }
}
await db.destroy();

/** Counting TLS sessions: bounded rows, and one taker of a report. */
import test from 'ava';
import { kinds } from '#lab/database/databases.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { countTlsSessions, dayMs, reportTime } from '#mail/queue/rows/tls-sessions.ts';
import { dueTlsReports, forgetTlsResults, takeTlsReport } from '#operate/tls-reports/rows/tls-results.ts';
import { openDatabase } from '#platform/database/engine/open.ts';
import type { Attempt, TlsSession } from '#platform/values/glossary.ts';

const session = (of: Partial<TlsSession>): TlsSession => ({
  policy: 'sts',
  policyText: ['mode: enforce'],
  host: 'mx1.invalid',
  address: '192.0.2.1',
  source: null,
  failure: null,
  reason: null,
  ...of,
});

const day = 20_000;
const count = (domain: string, tlsSessions: TlsSession[]) => ({
  domain,
  attempt: { endedAt: day * dayMs, tlsSessions } as Attempt,
});

for (const database of kinds) {
  test(`sessions add up in few rows, and one node takes their report: ${database}`, async (t) => {
    const { db, config } = await startWorld(t, { database });
    const failed = session({ failure: 'certificate-expired', reason: 'x'.repeat(5000) });
    const counts = [
      count('a.invalid', [session({}), session({ host: 'mx2.invalid' }), failed]),
      count('a.invalid', [session({}), failed]),
      count('b.invalid', []),
    ];
    await Promise.all(
      Array.from({ length: 4 }, () => db.transaction((trx) => countTlsSessions(trx, counts))),
    );
    const report = { day, domain: 'a.invalid' };
    const due = reportTime(day, 'a.invalid');
    t.deepEqual(await dueTlsReports(db, due - 1, 10), []);
    t.deepEqual(await dueTlsReports(db, due, 10), [report]);

    const other = await openDatabase(config);
    t.teardown(() => other.destroy());
    const taken = await Promise.all(
      [db, other, db, other].map((one) => takeTlsReport(one, report, due, due + 1000)),
    );
    const rows = taken.filter((one) => one !== null);
    t.is(rows.length, 1);
    t.deepEqual(
      rows[0]!.map(({ host, failure, sessions }) => [host, failure, sessions]),
      [
        ['', '', 12],
        ['mx1.invalid', 'certificate-expired', 8],
      ],
    );
    t.is(rows[0]![1]!.reason!.length, 500);
    t.deepEqual(await dueTlsReports(db, due, 10), []);
    t.deepEqual(await dueTlsReports(db, due + 1000, 10), [report], 'again if this node fails');
    await forgetTlsResults(db, report);
    t.deepEqual(await db('tls_results'), []);
  });
}

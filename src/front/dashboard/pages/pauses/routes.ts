/** Auto-pauses: what the rules hold or warn of, why, and a button to release it. */
import { itemIn, showForm } from '#front/dashboard/form-page.ts';
import { type DashboardPage, type OrgVisit, type PageParts, redirect } from '#front/dashboard/page.ts';
import { countHeld } from '#mail/queue/rows/held-of-group.ts';
import { pauseRules } from '#mail/record/auto-pause/pause-rules.ts';
import { findPause, listPauses, pauseTitle, releasePause } from '#mail/record/auto-pause/rows/auto-pauses.ts';
import { capital } from '#platform/base/capital.ts';

const maxShown = 20;

export const pausesPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/pauses': (visit, parts) => list(visit, parts),
    async 'POST /dashboard/o/:org/pauses/:id/release'(visit, { db }) {
      const pause = await itemIn(visit, 'auto-pause', (id, orgId) => findPause(db, id, orgId));
      const released = await releasePause(db, pause, visit.now);
      const text = released?.sweep ? 'The mail is sent again within seconds.' : 'The warning was put aside.';
      return redirect(`${visit.base}/pauses`, released ? text : 'That was released before.');
    },
  },
};

async function list(visit: OrgVisit, { db }: PageParts) {
  const found = await listPauses(db, maxShown + 1, visit.org.id);
  const listed = found.slice(0, maxShown);
  const holding = listed.filter(({ state }) => state === 'held');
  const counts = await countHeld(db, visit.org.id, holding, visit.now);
  const pauses = listed.map((pause) => ({
    ...pause,
    ...pauseRules[pause.rule],
    title: capital(pauseTitle(pause)),
    held: counts[holding.indexOf(pause)] ?? null,
  }));
  return showForm('pauses/pauses', 'Auto-pauses', visit, { pauses, isCut: found.length > maxShown }, {});
}

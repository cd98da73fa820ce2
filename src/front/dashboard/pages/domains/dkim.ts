/** A domain's DKIM keys. A new key signs once its record is found, by a check on the page or by the server's own. */
import { addKeys, algorithmsOf, endEd25519 } from '#accounts/dkim-rotation.ts';
import { dropPendingKeys } from '#accounts/rows/dkim-keys.ts';
import type { DomainRecord } from '#accounts/rows/domains-table.ts';
import { inSlot } from '#front/dashboard/form-page.ts';
import {
  type DashboardPage,
  type Flash,
  type OrgVisit,
  type PageParts,
  redirect,
} from '#front/dashboard/page.ts';
import { domainIn } from './domain-page.ts';

export const dkimPage: DashboardPage = {
  organization: {
    'POST /dashboard/o/:org/domains/:name/rotate': (visit, parts) => add(visit, parts, algorithmsOf),
    'POST /dashboard/o/:org/domains/:name/ed25519': (visit, parts) => add(visit, parts, () => ['ed25519']),
    async 'POST /dashboard/o/:org/domains/:name/rotate/cancel'(visit, { db }) {
      const domain = await domainIn(visit, db);
      await dropPendingKeys(db, domain.id);
      return back(visit, domain, 'The new key was discarded. The current key keeps signing.');
    },
    async 'POST /dashboard/o/:org/domains/:name/ed25519/end'(visit, { db, keepKeysMs: keepMs }) {
      const domain = await domainIn(visit, db);
      await endEd25519(db, domain, { now: visit.now, keepMs });
      return back(visit, domain, 'Mail is now signed with RSA only.');
    },
  },
};

async function add(
  visit: OrgVisit,
  { db, seal, longWorkSlots }: PageParts,
  algorithms: (domain: DomainRecord) => ReturnType<typeof algorithmsOf>,
) {
  const domain = await domainIn(visit, db);
  const added = await inSlot(longWorkSlots.dnsChecks, visit, () =>
    addKeys(db, domain, algorithms(domain), { seal, now: visit.now }),
  );
  return back(
    visit,
    domain,
    added > 0
      ? 'A new key was created. Publish its record and keep the old one: the new key signs mail as soon as its record is found.'
      : { tone: 'note', text: 'A new key already exists and is waiting for its DNS record.' },
  );
}

function back({ base }: OrgVisit, { name }: DomainRecord, flash: string | Flash) {
  return redirect(`${base}/domains/${name}`, flash);
}

/** A domain's DKIM keys. A new key signs once its record is found, by a check on the page or by the server's own. */
import { addKeys, algorithmsOf, endEd25519 } from '../../../accounts/dkim-rotation.ts';
import { dropPendingKeys } from '../../../db/accounts/dkim-keys.ts';
import type { DomainRecord } from '../../../db/accounts/domains-table.ts';
import {
  type DashboardPage,
  type Flash,
  type OrgVisit,
  type PageAnswer,
  type PageParts,
  redirect,
} from '../../page.ts';
import { domainIn, withDnsSlot } from './domain-page.ts';

export const dkimPage: DashboardPage = {
  organization: {
    'POST /dashboard/o/:org/domains/:name/rotate': (visit, parts) => add(visit, parts, algorithmsOf),
    'POST /dashboard/o/:org/domains/:name/ed25519': (visit, parts) => add(visit, parts, () => ['ed25519']),
    'POST /dashboard/o/:org/domains/:name/rotate/cancel': cancel,
    'POST /dashboard/o/:org/domains/:name/ed25519/end': end,
  },
};

async function add(
  visit: OrgVisit,
  parts: PageParts,
  algorithms: (domain: DomainRecord) => ReturnType<typeof algorithmsOf>,
): Promise<PageAnswer> {
  const domain = await domainIn(visit, parts);
  const terms = { seal: parts.seal, now: visit.now };
  const added = await withDnsSlot(visit, parts, () => addKeys(parts.db, domain, algorithms(domain), terms));
  return back(
    visit,
    domain,
    added > 0
      ? 'A new key was created. Publish its record and keep the old one: the new key signs mail as soon as its record is found.'
      : { tone: 'note', text: 'A new key already exists and is waiting for its DNS record.' },
  );
}

async function cancel(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const domain = await domainIn(visit, parts);
  await dropPendingKeys(parts.db, domain.id);
  return back(visit, domain, 'The new key was discarded. The current key keeps signing.');
}

async function end(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const domain = await domainIn(visit, parts);
  await endEd25519(parts.db, domain, { now: visit.now, keepMs: parts.keepKeysMs });
  return back(visit, domain, 'Mail is now signed with RSA only.');
}

function back({ base }: OrgVisit, { name }: DomainRecord, flash: string | Flash): PageAnswer {
  return redirect(`${base}/domains/${name}`, flash);
}

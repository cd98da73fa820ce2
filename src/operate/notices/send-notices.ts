/**
 * Notifies people by mail when an entry of the status that needs action appears, and when it is gone: an organization's entry
 * goes to its owners, any other to the operators. An entry that appears and goes within an hour has one mail. A mail that cannot
 * be delivered is dropped after a day. A destination's entry is not sent to addresses there, because that mail would wait too.
 */
import { createHash } from 'node:crypto';
import { giveNoticesBack, type Notice, openNotices, takeNotices } from '#accounts/rows/notices.ts';
import { exhaustedOrganizations } from '#accounts/rows/organizations.ts';
import { responsibleAddresses } from '#accounts/rows/users.ts';
import { routesOf } from '#mail/record/rows/destination-status-rows.ts';
import { troubleOf } from '#operate/condition/causes.ts';
import type { Need } from '#operate/status/need.ts';
import { creditNeeds } from '#operate/status/owner-needs.ts';
import { readStatus, type Status } from '#operate/status/read-status.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import { domainOf } from '#platform/values/address.ts';
import { noticeMail, type Told } from './notice-mail.ts';
import type { ServerMailer } from './server-mail.ts';

export interface NoticesParts {
  db: Db;
  config: Config;
  now(): number;
  baseUrl(): string;
  mailer: ServerMailer;
  onError(what: string, error: unknown): void;
}

const notReady = 'no organization has the domain of POSTERN_NOTICES_FROM, verified';
/** Lists of the status that are as long may lack entries that are not gone. */
const longList = 20;

/** A maintenance job: returns how many more there are at once, which is none. */
export function sendNotices(parts: NoticesParts): () => Promise<number> {
  let wasReady = true;
  const isReady = async () => {
    const ready = await parts.mailer.isReady();
    if (wasReady && !ready) parts.onError('no notices are sent', new Error(notReady));
    wasReady = ready;
    return ready;
  };
  return async () => {
    const now = parts.now();
    if (!(await isReady())) return 0;
    const status = await readStatus({ db: parts.db, config: parts.config, now });
    const needs = [...status.needs, ...(await exhausted(parts, now))];
    const open = await openNotices(parts.db);
    const told = [...appeared(needs, open), ...gone(open, needs, status)];
    if (told.length > 0) await tell(parts, told, now);
    return 0;
  };
}

async function exhausted({ db, config }: NoticesParts, now: number): Promise<Need[]> {
  const organizations = await exhaustedOrganizations(db, longList);
  const lowShare = config.creditsLow / 100;
  return organizations.flatMap((org) =>
    creditNeeds({ org, lowShare, now }).map((need) => ({ ...need, command: '' })),
  );
}

function appeared(needs: Need[], open: Notice[]): Told[] {
  const known = new Set(open.map(({ id }) => id));
  return needs
    .filter((need) => need.severity === 'act' && !known.has(idOf(need)))
    .map((need) => {
      const { cause, subject, path, orgId = null } = need;
      return {
        id: idOf(need),
        isOpen: true,
        entry: { kind: kindOf(need), label: troubleOf(cause), subject, path, orgId },
        need,
      };
    });
}

/** Entries that are neither listed any more nor folded into another one. */
function gone(open: Notice[], needs: Need[], { folded, more }: Status): Told[] {
  const listed = Map.groupBy([...needs, ...folded], kindOf);
  const isCut = (kind: string) => {
    if (kind === 'destination' && more > 0) return true;
    return (listed.get(kind)?.length ?? 0) >= longList;
  };
  const present = new Set([...needs, ...folded].map(idOf));
  return open
    .filter(({ id, entry }) => !present.has(id) && !isCut(entry.kind))
    .map(({ id, entry }) => ({ id, entry, isOpen: false, need: null }));
}

/** The cause of a destination's trouble changes with each reply; it is one entry nevertheless. */
const kindOf = ({ cause, traffic }: Need): string => (traffic ? 'destination' : cause);

function idOf(need: Need): string {
  const id = [kindOf(need), need.orgId ?? '', need.subject];
  return createHash('sha256').update(JSON.stringify(id)).digest('hex');
}

async function tell(parts: NoticesParts, told: Told[], now: number): Promise<void> {
  const { db, config, mailer, onError } = parts;
  const addresses = new Map<string | null, string[]>();
  for (const orgId of new Set(told.map(({ entry }) => entry.orgId)))
    addresses.set(orgId, await responsibleAddresses(db, orgId));
  // A problem is left for the first operator, if there is none yet.
  const wanted = told.filter(({ isOpen, entry }) => !isOpen || addresses.get(entry.orgId)!.length > 0);
  const taken = new Set((await takeNotices(db, wanted, now)).map(({ id }) => id));
  const mails = await mailsFor(
    db,
    told.filter(({ id }) => taken.has(id)),
    addresses,
  );
  for (const { to, list } of mails) {
    const mail = noticeMail(list, { hostname: config.hostname, baseUrl: parts.baseUrl() });
    const isSent = await mailer.send({ to, ...mail }).catch((error) => {
      onError('a notice could not be sent', error);
      return false;
    });
    // Nobody has been told.
    if (!isSent) await giveNoticesBack(db, list, now);
  }
}

/** One mail for all people who get the same entries. */
async function mailsFor(
  db: Db,
  told: Told[],
  addressesOf: Map<string | null, string[]>,
): Promise<{ to: string[]; list: Told[] }[]> {
  const lists = new Map<string, Told[]>();
  for (const [orgId, group] of Map.groupBy(told, ({ entry }) => entry.orgId)) {
    const addresses = addressesOf.get(orgId)!;
    const routes = await routesOf(
      db,
      addresses.map((address) => domainOf(address)!),
    );
    for (const address of addresses) {
      const own = routes.get(domainOf(address)!);
      const list = group.filter(({ need }) => !need?.traffic || need.subject !== own);
      lists.set(address, [...(lists.get(address) ?? []), ...list]);
    }
  }
  const same = Map.groupBy(lists.entries(), ([, list]) => list.map(({ id }) => id).join());
  return [...same.values()]
    .map((some) => ({ to: some.map(([address]) => address), list: some[0]![1] }))
    .filter(({ list }) => list.length > 0);
}

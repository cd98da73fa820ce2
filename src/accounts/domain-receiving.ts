/**
 * Switches the receiving of mail for a domain on or off, for API, command line and dashboard. A domain that is pending may be
 * switched on before its records are found: it receives from its verification on, unless another organization does by then.
 */
import type { DomainRecord } from '#accounts/rows/domains-table.ts';
import { isReceivedElsewhere, setDomainReceives } from '#accounts/rows/receiving-domains.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { Refusal } from '#platform/values/refusal.ts';
import type { Names } from './domains.ts';

export async function switchReceiving(
  db: Db,
  domain: Pick<DomainRecord, 'id' | 'name' | 'status'>,
  receives: boolean,
  { hostname, returnPathDomain, inboundPort = null }: Names,
): Promise<void> {
  const { id, name, status } = domain;
  const refuse = (why: string) => new Refusal('BAD_REQUEST', why);
  if (receives) {
    if (inboundPort === null)
      throw refuse('This server receives no mail until its operator sets POSTERN_INBOUND_PORT.');
    if (name === hostname || name === returnPathDomain)
      throw refuse(`${name} is a name of this server, for its own mail. Receive at another domain.`);
    if (status === 'verified' && (await isReceivedElsewhere(db, { id, name })))
      throw refuse(
        `Another organization of this server receives the mail for ${name}. It must stop before this one can begin; a subdomain can be used meanwhile.`,
      );
  }
  await setDomainReceives(db, id, receives);
}

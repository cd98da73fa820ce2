/**
 * Chooses the return path of each delivery: under the sender's domain while its record is there (accounts/rows/return-paths.ts),
 * otherwise at the server's. The database is read when one of them has changed, and questions are answered from memory.
 */

import { returnPathOf, returnPathsInUse } from '#accounts/rows/return-paths.ts';
import { createReturnPath } from '#mail/returned/return-path.ts';
import { parseMailbox } from '#platform/values/address.ts';
import type { Delivery } from '#platform/values/glossary.ts';
import type { ServerContext } from './context.ts';

export type ReturnPaths = ReturnType<typeof createReturnPaths>;

export function createReturnPaths({ config, db, secrets }: ServerContext) {
  const write = createReturnPath(secrets, config.returnPathDomain);
  let inUse = new Set<string>();
  let version = '';
  const ownOf = ({ orgId, from }: Delivery) => {
    const domain = inUse.size > 0 ? parseMailbox(from)?.domain : undefined;
    return domain !== undefined && inUse.has(`${orgId} ${domain}`) ? returnPathOf(domain) : null;
  };
  return {
    of: (delivery: Delivery) => write(delivery.id, ownOf(delivery)),
    async refresh(current: string): Promise<void> {
      if (current === version) return;
      inUse = await returnPathsInUse(db);
      version = current;
    },
  };
}

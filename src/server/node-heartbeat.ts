/**
 * Registers a node without the role `mta` every ten seconds (platform/database/tables/nodes.ts), so that no other node upgrades
 * the database meanwhile.
 */
import { readVersion } from '#platform/base/version.ts';
import { withTimeout } from '#platform/base/waits.ts';
import { leave, register } from '#platform/database/tables/nodes.ts';
import type { ServerContext } from './context.ts';

const intervalMs = 10_000;
/** A stop has few seconds, and may happen because the database is away. */
const leaveTimeoutMs = 1_000;

/** Returns a function that deregisters the node. */
export function stayRegistered({ db, node, clock, onError }: ServerContext): () => Promise<void> {
  const version = readVersion();
  let stopped = false;
  let cancel = () => {};
  let inFlight = Promise.resolve();

  function later(): void {
    if (stopped) return;
    cancel = clock.after(intervalMs, () => {
      inFlight = register(db, { node, version, at: clock.now() })
        .catch((error) => onError('this node could not register itself in the database; trying again', error))
        .then(later);
    });
  }

  later();
  return async () => {
    stopped = true;
    cancel();
    const left = inFlight.then(() => leave(db, node)).catch(() => {});
    await withTimeout(leaveTimeoutMs, left, () => {});
  };
}

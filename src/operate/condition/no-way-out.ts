/**
 * Whether nothing gets out of a node at all: several destinations fail by DNS or by connecting, and no host has answered the
 * node since (mail/record/destination-health.ts). A pure function of what the nodes have published.
 */
import type { SilentDestination } from '#mail/record/rows/destination-status-rows.ts';

export interface NoWayOut {
  node: string;
  since: number;
  /** All that the node has tried since. */
  destinations: Set<string>;
  cause: 'port' | 'resolver' | 'dns';
}

/** With one, it is more likely that the destination is down. */
const minDestinations = 2;

export function noWaysOut(silent: SilentDestination[]): NoWayOut[] {
  const nodes = [...Map.groupBy(silent, ({ node }) => node)];
  return nodes.flatMap(([node, published]) => {
    const all = triedSinceResolverFailed(published);
    const begun = all.filter(({ problem }) => problem.silentSince === 'since');
    if (begun.length === 0 || all.length < minDestinations) return [];
    const only = (cause: string) => all.every(({ problem }) => problem.cause === cause);
    const hasConnected = all.some(({ problem }) => ['unreachable', 'no_route'].includes(problem.cause));
    const elsewhere = only('resolver_failing') ? 'resolver' : 'dns';
    return {
      node,
      since: Math.min(...begun.map(({ problem }) => problem.since)),
      destinations: new Set(all.map(({ destination }) => destination)),
      cause: hasConnected ? 'port' : elsewhere,
    };
  });
}

/** Silence before that says nothing about the cause now: without DNS, nothing connects to those hosts again. */
function triedSinceResolverFailed(all: SilentDestination[]): SilentDestination[] {
  const failing = all.filter(({ problem }) => problem.cause === 'resolver_failing');
  if (failing.length < minDestinations) return all;
  const begun = Math.min(...failing.map(({ problem }) => problem.since));
  return all.filter(({ problem }) => problem.at >= begun);
}

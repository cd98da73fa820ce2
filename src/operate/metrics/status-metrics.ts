/** The metrics of `postern status`: how much needs action, and the destinations in trouble, of which it lists at most 20. */
import type { Status } from '#operate/status/read-status.ts';
import type { Meters } from './registry.ts';

type StatusMeters = Pick<
  Meters,
  'statusNeeds' | 'destinationTrouble' | 'destinationWaiting' | 'destinationRate' | 'destinationDrain'
>;

export function setStatus(meters: StatusMeters, { needs, folded }: Pick<Status, 'needs' | 'folded'>): void {
  const { statusNeeds, destinationTrouble, destinationWaiting, destinationRate, destinationDrain } = meters;
  for (const severity of ['act', 'watch'] as const) {
    statusNeeds.set({ severity }, needs.filter((need) => need.severity === severity).length);
  }
  for (const gauge of [destinationTrouble, destinationWaiting, destinationRate, destinationDrain])
    gauge.reset();
  const single = needs.filter(({ cause }) => cause !== 'no_way_out');
  for (const { cause, subject: destination, since, traffic } of [...single, ...folded]) {
    if (!traffic) continue;
    destinationTrouble.set({ destination, cause }, (since ?? 0) / 1000);
    destinationWaiting.set({ destination }, traffic.waiting);
    if (traffic.perMinute !== null) destinationRate.set({ destination }, traffic.perMinute);
    if (traffic.drainMs !== null) destinationDrain.set({ destination }, traffic.drainMs / 1000);
  }
}

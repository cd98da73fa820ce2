/** Creates the metrics of the catalog with prom-client, in a new registry. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { catalog, type Documented } from './catalog.ts';

type Catalog = typeof catalog;

interface Kinds {
  counter: Counter;
  gauge: Gauge;
  histogram: Histogram;
}

export type Meters = { [Key in keyof Catalog]: Kinds[Catalog[Key]['kind']] };

export function createRegistry(): { registry: Registry; meters: Meters } {
  const registry = new Registry();
  const meters = Object.entries(catalog).map(([key, one]) => [key, meterOf(one, registry)]);
  return { registry, meters: Object.fromEntries(meters) };
}

function meterOf({ kind, name, help, labels, buckets }: Documented, registry: Registry) {
  const options = { name, help, labelNames: labels, registers: [registry] };
  if (kind === 'counter') return new Counter(options);
  if (kind === 'gauge') return new Gauge(options);
  return new Histogram({ ...options, buckets: [...buckets!] });
}

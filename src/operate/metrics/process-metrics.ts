/**
 * What there is to say of the process: CPU, memory, files, garbage collection, delays of the event loop. It is the
 * process's to ask for, once: prom-client's observers cannot be taken back.
 */
import { collectDefaultMetrics, type Registry } from 'prom-client';

/**
 * Left out: the counts of handles, which walk all sockets at each scrape and are named against the conventions
 * (promtool says so), and V8's heap by spaces, two dozen series that tell an operator nothing.
 */
const odd =
  /^nodejs_(active_(handles|requests|resources)|heap_space_|eventloop_lag_(min|stddev|mean|p90)|version)/;

/** A timer this often; the delays that matter are longer. */
const resolutionMs = 20;

export function watchProcess(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: resolutionMs });
  for (const { name } of registry.getMetricsAsArray()) if (odd.test(name)) registry.removeSingleMetric(name);
}

/**
 * Metrics about the process: CPU, memory, files, garbage collection, event loop delay. main.ts adds them, once, because
 * prom-client's observers cannot be removed.
 */
import { collectDefaultMetrics, type Registry } from 'prom-client';

/**
 * Removed: the handle counts, which walk all sockets at each scrape and whose names promtool rejects, and V8's heap spaces,
 * two dozen series that are of no use to an operator.
 */
const unwanted =
  /^nodejs_(active_(handles|requests|resources)|heap_space_|eventloop_lag_(min|stddev|mean|p90)|version)/;

/** The interval of the timer that measures the event loop, in milliseconds. A shorter one wakes an idle process more often. */
const resolutionMs = 1000;

export function watchProcess(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: resolutionMs });
  for (const { name } of registry.getMetricsAsArray())
    if (unwanted.test(name)) registry.removeSingleMetric(name);
}

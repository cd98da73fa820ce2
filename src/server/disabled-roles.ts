/**
 * The parts of a node without the role `mta` or `http` (POSTERN_ROLES): they do nothing, because other nodes do it.
 * start.ts builds them instead of delivery.ts's and intake.ts's.
 */
import type { Backlog } from '#platform/values/glossary.ts';
import type { DeliveryEngine } from './delivery.ts';
import type { Intake } from './intake.ts';

const idle = async () => {};

/** Without `mta`: accepted mail waits in its backlog, and `onDue` notifies the nodes that deliver. */
export function disabledDelivery(onDue: (backlog: Backlog) => void): DeliveryEngine {
  return {
    runner: {
      start: idle,
      wake() {},
      hasProgressed: () => true,
      noteNotified() {},
      noteScheduled() {},
      admit: (domain, orgId) => ({
        startState: 'due',
        settle: (delivery) => delivery && onDue({ domain, orgId }),
      }),
      stop: idle,
    },
    restore() {},
    load: () => ({ connections: { busy: 0, idle: 0 }, inFlight: 0 }),
    close: idle,
  };
}

/** Without `http`: /health and /metrics are answered before this; everything else is not found. */
export const disabledIntake: Intake = {
  answer: async (_, response) => {
    response.writeHead(404, { 'Content-Type': 'text/plain; charset=utf-8' });
    response.end('This node does not have the role "http"; only /health and /metrics are available.\n');
  },
  settled: idle,
  accept: null,
  serverMailer: null,
  submission: null,
  endLongRequests: idle,
};

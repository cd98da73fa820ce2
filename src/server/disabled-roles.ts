/**
 * What a node has in the place of a part whose role it does not have (POSTERN_ROLES): nothing is done here, other
 * nodes do it. main.ts builds these instead of intake.ts's and delivery.ts's.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Backlog } from '../queue/backlogs.ts';
import type { DeliveryEngine } from './delivery.ts';

const idle = async () => {};

/** Without `mta`: all that is accepted waits in its lane, and `onDue` tells who delivers. */
export function disabledDelivery(onDue: (lane: Backlog) => void): DeliveryEngine {
  return {
    runner: {
      start: idle,
      wake() {},
      noteBacklog() {},
      admit: (domain, orgId) => ({
        disposition: 'due',
        settle: (delivery) => delivery && onDue({ domain, orgId }),
      }),
      stop: idle,
    },
    load: () => ({ connections: { busy: 0, idle: 0 }, inFlight: 0 }),
    close: idle,
  };
}

/** Without `http`: /health and /metrics go before this, and there is nothing else. */
export const disabledIntake = {
  answer: async (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(404, { 'Content-Type': 'text/plain; charset=utf-8' });
    response.end('This node has no role "http"; /health and /metrics are all that is here.\n');
  },
  settled: idle,
  submission: null,
  hurry: idle,
};

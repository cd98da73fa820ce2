/** The schemas of receiving routes in requests and responses. */
import { z } from 'zod';
import { moment, success } from '#front/api/management.ts';
import { checkResults } from '#mail/received/check-address.ts';
import { maxPriority, minLargest } from '#mail/received/define-route.ts';
import { dmarcChoices, maxReceivedBytes, receivingActions } from '#mail/received/received-mail.ts';
import { defaultReply } from '#mail/received/reject-reply.ts';

const pattern = z.string().meta({
  description:
    'The addresses that the route takes: one (`orders@example.com`), those that a `*` stands for (`orders+*@example.com`), all of a ' +
    "domain (`*@example.com`), or those whose part before the @ is matched as a whole by an expression in RE2's syntax " +
    '(`/ticket-[0-9]+/@example.com`). Letter case does not matter.',
  examples: ['orders+*@example.com'],
});
const action = z.enum(receivingActions, { error: `must be one of ${receivingActions.join(', ')}` }).meta({
  description:
    'webhook: the email is kept, is in the feed of events, and is posted; store: it is kept and in the feed; reject: it is refused ' +
    'with `reply`; drop: it is taken and forgotten.',
});
const priority = z.int().min(0).max(maxPriority).meta({
  description: 'The route with the lowest number that takes an address decides; of equal ones, the oldest.',
});
const webhookId = z.uuid().nullable().meta({
  description:
    'For the action webhook: where the email is posted. Null: to all webhooks that subscribe to `email.received`.',
});
const reply = z
  .string()
  .nullable()
  .meta({
    description: 'For the action reject: what the sender is told, as in the example.',
    examples: [defaultReply],
  });
const dmarc = z.enum(dmarcChoices, { error: `must be one of ${dmarcChoices.join(', ')}` }).meta({
  description:
    'What becomes of an email that fails DMARC if the domain of its From asks to reject such email: accept takes it and says so in ' +
    'its verdicts.',
});
const largest = z.int().min(minLargest).max(maxReceivedBytes).nullable().meta({
  description: 'The bytes of the largest email that the route takes; null: as many as the server takes.',
});

export const newRoute = z.object({
  pattern,
  action,
  priority: priority.optional().meta({
    description:
      'The route with the lowest number that takes an address decides; of equal ones, the oldest. By default 100 for an address, 200 ' +
      'with a `*`, 300 for an expression and 400 for a whole domain, so that the narrower decides.',
  }),
  webhookId: webhookId.optional(),
  reply: reply.optional(),
  dmarc: dmarc.optional(),
  largest: largest.optional(),
});

export const routeChange = newRoute.partial().meta({
  description:
    'Members that are left out do not change. With another action, `webhookId` and `reply` are null again unless they are given.',
});

export const checkQuery = z.object({
  address: z
    .string()
    .meta({ description: 'The address of a recipient.', examples: ['orders+17@example.com'] }),
});

const route = z
  .object({
    id: z.uuid(),
    domain: z.string().meta({ description: 'The domain of the pattern, in ASCII (A-labels).' }),
    pattern,
    priority,
    action,
    webhookId,
    reply,
    dmarc,
    largest,
    createdAt: moment,
    updatedAt: moment,
  })
  .meta({ description: 'What becomes of email that is received for some addresses.' });

export const routeSchemas = {
  Route: route,
  RoutesAnswer: success({
    routes: z
      .array(route)
      .meta({ description: 'All routes, by domain; of each domain in the order in which they are asked.' }),
  }),
  RouteAnswer: success({ route }),
  RouteCheckAnswer: success({
    result: z.enum(checkResults).meta({
      description:
        'The action of the route that takes the address; or that no route does, or that its domain does not receive: then email for ' +
        'it is refused.',
    }),
    reason: z.string().meta({ description: 'The result in a sentence.' }),
    route: route.nullable(),
  }),
};

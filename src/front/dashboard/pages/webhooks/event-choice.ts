/** The event types of an endpoint in a form: all, or the selected ones. */
import { z } from 'zod';
import { checkboxes } from '#front/dashboard/forms.ts';
import { capital } from '#platform/base/capital.ts';
import { eventTypes } from '#platform/values/glossary.ts';

/** webhook.test is always posted to the endpoint that is tested, so it cannot be chosen. */
const choosable = eventTypes.filter((type) => type !== 'webhook.test');

/** The types grouped by what they are about: email, suppression, and so on. */
export const groups = [...Map.groupBy(choosable, (type) => type.split('.')[0]!)].map(([name, types]) => ({
  name: capital(name),
  types,
}));

export const eventFields = z
  .object({
    which: z.enum(['all', 'some']).default('all'),
    events: checkboxes.pipe(z.array(z.enum(choosable))),
  })
  .transform(({ which, events }, context) => {
    if (which === 'all') return [];
    if (events.length > 0) return events;
    context.addIssue({
      code: 'custom',
      path: ['events'],
      message: 'Select at least one event type, or choose all.',
    });
    return z.NEVER;
  });

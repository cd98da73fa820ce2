/** Which events an endpoint is told of, as a form has it: all, or those that are ticked. */
import { z } from 'zod';
import { eventTypes } from '../../../glossary.ts';
import { checkboxes } from '../../forms.ts';

/** A test is told to the endpoint that is tested, whatever it has asked for. */
const choosable = eventTypes.filter((type) => type !== 'webhook.test');

/** For the form: email, suppression, and so on, with their types. */
export const groups = [...Map.groupBy(choosable, (type) => type.split('.')[0]!)].map(([name, types]) => ({
  name: `${name[0]!.toUpperCase()}${name.slice(1)}`,
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
    context.addIssue({ code: 'custom', path: ['events'], message: 'Tick at least one, or choose all.' });
    return z.NEVER;
  });

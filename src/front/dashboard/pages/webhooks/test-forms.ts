/** Posts a test event to an endpoint immediately, or replays earlier events. */
import { z } from 'zod';
import { goneSignal } from '#front/api/management.ts';
import { inSlot } from '#front/dashboard/form-page.ts';
import { checkForm } from '#front/dashboard/forms.ts';
import { count } from '#front/dashboard/number-format.ts';
import { type DashboardPage, type Flash, redirect } from '#front/dashboard/page.ts';
import { PageError } from '#front/dashboard/page-error.ts';
import { testWebhook } from '#mail/webhooks/endpoints.ts';
import { type ReplaySelection, replay } from '#mail/webhooks/rows/webhook-replay-rows.ts';
import { span } from '#platform/base/span.ts';
import { webhookIn } from './find-endpoint.ts';

const hour = 3_600_000;

const fields = z.union([
  z.object({ event: z.guid().transform((id) => id.toLowerCase()) }),
  z.object({ failed: z.literal('yes') }),
  z.object({ hours: z.enum(['1', '24', '168']).transform(Number) }),
]);

export const webhookTestPage: DashboardPage = {
  organization: {
    async 'POST /dashboard/o/:org/webhooks/:id/test'(visit, { db, attemptWebhook, clock, longWorkSlots }) {
      const webhook = await webhookIn(visit, db);
      const { answer, error, duration } = await inSlot(longWorkSlots.tests, visit, () =>
        testWebhook(db, webhook, { attemptWebhook, clock }, goneSignal(visit.context)),
      );
      const flash: Flash = error
        ? { tone: 'bad', text: `The test failed: ${error}.` }
        : {
            tone: 'good',
            text: `The endpoint accepted the test: HTTP ${answer!.status} in ${span(duration)}.`,
          };
      return redirect(`${visit.base}/webhooks/${webhook.id}`, flash);
    },
    async 'POST /dashboard/o/:org/webhooks/:id/replay'(visit, { db, eventSignal, longWorkSlots }) {
      const { context, base, form, now } = visit;
      const webhook = await webhookIn(visit, db);
      const checked = checkForm(form, fields);
      if (!checked.ok) throw new PageError(422, 'That did not work', 'Choose which events to replay.');
      const replayed = await inSlot(longWorkSlots.replays, visit, () =>
        replay(db, webhook, selectionOf(checked.values, now), now, goneSignal(context)),
      );
      eventSignal.notify();
      return redirect(`${base}/webhooks/${webhook.id}`, wordsOn(replayed, webhook.status === 'disabled'));
    },
  },
};

function selectionOf(checked: z.output<typeof fields>, now: number): ReplaySelection {
  if ('event' in checked) return { eventId: checked.event };
  return 'failed' in checked ? { failed: true } : { since: now - checked.hours * hour, until: now };
}

function wordsOn(replayed: number, isDisabled: boolean): Flash {
  if (replayed === 0) return { tone: 'note', text: 'There are no events to replay.' };
  const what = replayed === 1 ? 'One event is' : `${count(replayed)} events are`;
  if (isDisabled) return { tone: 'note', text: `${what} replayed when the endpoint is enabled.` };
  return { tone: 'good', text: `${what} being replayed.` };
}

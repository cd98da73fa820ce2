/** The schema of the response of a send (docs/api.md section 2.4). */
import { z } from 'zod';
import type { SendAnswerRecord } from '#platform/database/tables/send-record.ts';

const addresses = z.array(z.string().meta({ format: 'idn-email' })).min(1);

export const sendAnswer = z
  .object({
    success: z.literal(true),
    id: z.string().meta({ description: 'The Message-ID of the email, without angle brackets.' }),
    emailId: z.uuid().meta({ description: "The email's identifier, for `GET /api/public/email/{id}`." }),
    accepted: addresses.meta({ description: 'The recipients that the email is sent to.' }),
    suppressed: addresses.optional().meta({
      description: 'Recipients that were skipped because they are suppressed. Absent if there are none.',
    }),
    insufficientCredit: addresses.optional().meta({
      description: 'Recipients that were skipped because the credits ran out. Absent if there are none.',
    }),
  })
  .meta({
    description:
      'The email is stored on disk and its credits are spent. It will be delivered, or an event says why not.',
  });

export type SendAnswer = z.input<typeof sendAnswer>;

/** Empty lists are left out (docs/api.md section 2.4). */
export function presentSend({
  id,
  emailId,
  accepted,
  suppressed,
  insufficientCredit,
}: SendAnswerRecord): SendAnswer {
  return {
    success: true,
    id,
    emailId,
    accepted,
    ...(suppressed.length > 0 && { suppressed }),
    ...(insufficientCredit.length > 0 && { insufficientCredit }),
  };
}

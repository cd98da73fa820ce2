/** The answer of a send as a schema (docs/api.md section 2.4): for the OpenAPI document, and for the tests. */
import { z } from 'zod';

const addresses = z.array(z.string().meta({ format: 'idn-email' })).min(1);

export const sendAnswer = z
  .object({
    success: z.literal(true),
    id: z.string().meta({ description: 'The Message-ID of the email, without its angle brackets.' }),
    emailId: z
      .uuid()
      .meta({ description: "The email's identifier: ask `GET /api/public/email/{id}` with it." }),
    accepted: addresses.meta({ description: 'The recipients that it goes to.' }),
    suppressed: addresses.optional().meta({
      description:
        'Recipients skipped because they are on the suppression list. Absent where there are none.',
    }),
    insufficientCredit: addresses
      .optional()
      .meta({ description: 'Recipients skipped because credits ran out. Absent where there are none.' }),
  })
  .meta({
    description:
      'The email is on disk and its credits are spent: it will be delivered, or you are told why not.',
  });

export type SendAnswer = z.input<typeof sendAnswer>;

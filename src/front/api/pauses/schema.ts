/** The schemas of auto-pauses in responses. */
import { z } from 'zod';
import { moment, success } from '#front/api/management.ts';
import { pauseRules } from '#mail/record/auto-pause/pause-rules.ts';
import { mailGroupKinds } from '#platform/database/tables/mail-group.ts';

const rules = Object.keys(pauseRules) as [keyof typeof pauseRules];

const pause = z
  .object({
    id: z.uuid(),
    kind: z.enum(mailGroupKinds).meta({ description: 'Whose mail it is.' }),
    name: z.string().meta({
      description: 'The id of the key, the name of the stream, or the tag, as the statistics name it.',
    }),
    label: z.string().nullable().meta({ description: 'The label of the key; null for the others.' }),
    state: z.enum(['held', 'warned', 'released']).meta({
      description: 'held: its mail is held, and what is accepted is, too. warned: its mail goes on.',
    }),
    rule: z.enum(rules).meta({ description: 'The rule that it broke.' }),
    count: z.int().meta({ description: 'Complaints, hard bounces, or bounces with such a reply.' }),
    of: z.int().meta({ description: 'Of so many mails that were delivered, or delivered or bounced.' }),
    mails: z
      .array(
        z.object({
          emailId: z.uuid(),
          recipient: z.string(),
          at: moment,
          reply: z.string().nullable().meta({ description: 'Null for a complaint.' }),
        }),
      )
      .meta({ description: 'The last of them, ten at most.' }),
    since: moment,
  })
  .meta({ description: 'Mail of a key, a stream or a tag that a rule holds or warns of.' });

export const pauseSchemas = {
  Pause: pause,
  PauseAnswer: success({ pause }),
  PausesAnswer: success({
    pauses: z.array(pause).meta({ description: 'The newest first, 100 at most.' }),
  }),
};

/** The schemas of streams in requests and responses. */
import { z } from 'zod';
import { longestTitle } from '#accounts/manage-streams.ts';
import { moment, oneLine, success } from '#front/api/management.ts';
import { rule } from '#front/http/schema-rule.ts';
import { defaultStream, isStreamName, streamKinds, streamNameForm } from '#platform/values/stream.ts';

/** `transactional` is one too: to say that mail has no stream. */
export const streamName = z
  .string()
  .check(rule(isStreamName, streamNameForm))
  .meta({ examples: ['newsletter'] });

export const ofStream = streamName.optional().meta({
  description: `The list of this stream, which stops only its mail. Without it, or with \`${defaultStream}\`, the list that stops all mail.`,
});

const kind = z.enum(streamKinds).meta({
  description:
    'transactional: sent because of what one person did. subscribed: sent to people who subscribed; each email has a link to unsubscribe with one click (RFC 8058), unless it has a List-Unsubscribe of its own.',
});

const title = oneLine(longestTitle).meta({
  description: 'A name for people; recipients see it on the page where they unsubscribe.',
  examples: ['Our newsletter'],
});

const color = z
  .string()
  .check(rule((text) => /^#[0-9a-f]{6}$/i.test(text), 'a color such as #1a73e8'))
  .meta({ description: 'The color of the button on the page where recipients unsubscribe; null: ours.' });

const emailsPerDay = z.int().min(0).max(1_000_000_000).nullable().meta({
  description: 'Recipients that the stream accepts in a UTC day; null: as many as the organization.',
});

const tracking = z
  .object({
    openTracking: z.boolean().nullable().optional(),
    clickTracking: z.boolean().nullable().optional(),
  })
  .meta({ description: "What is tracked unless a send overrides it; null: what the sender's domain says." });

const settings = {
  title: title.optional(),
  kind: kind.optional(),
  tracking: tracking.optional(),
  emailsPerDay: emailsPerDay.optional(),
  color: color.nullable().optional(),
};

export const newStream = z.object({
  name: streamName.meta({ description: 'The name that a send or a key gives. It never changes.' }),
  ...settings,
});

export const streamChange = z
  .object(settings)
  .meta({ description: 'Members that are left out do not change.' });

const stream = z
  .object({
    name: z.string(),
    title: z.string(),
    kind,
    pool: z.string().nullable().meta({
      description:
        'The IP pool that its mail leaves from, which the operator sets; null: that of the organization.',
    }),
    tracking: z.object({ openTracking: z.boolean().nullable(), clickTracking: z.boolean().nullable() }),
    emailsPerDay,
    color: z.string().nullable(),
    createdAt: moment,
  })
  .meta({ description: `A stream. Mail without one is in \`${defaultStream}\`, which is not listed.` });

export const streamSchemas = {
  Stream: stream,
  StreamAnswer: success({ stream }),
  StreamsAnswer: success({ streams: z.array(stream).meta({ description: 'In the order of their names.' }) }),
};

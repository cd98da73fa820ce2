/** The schemas of API keys in requests and responses. */
import { z } from 'zod';
import { parseScopes } from '#accounts/api-keys.ts';
import { moment, nextId, oneLine, success } from '#front/api/management.ts';
import { limitSize } from '#front/api/send/at-most.ts';
import { streamName } from '#front/api/streams/schema.ts';
import { after, id, limit } from '#front/http/query.ts';

export const keysQuery = z.object({ limit: limit(100, 1000), after: after(id) });

export const rotateQuery = z.object({
  now: z
    .enum(['true', 'false'], { error: 'must be true or false' })
    .default('false')
    .transform((text) => text === 'true')
    .meta({ description: 'Whether the old key ends at once, because it has leaked.' }),
});

const maxScopes = 100;
const scopes = z.array(z.string()).meta({ examples: [['email:send', 'domain_scope:example.com']] });

export const newKeyRequest = z.object({
  label: oneLine(200).meta({ description: 'A name that says what the key is for.' }),
  scopes: limitSize(
    maxScopes,
    scopes
      .min(1)
      .max(maxScopes)
      .transform((names, context) => {
        const parsed = parseScopes(names);
        if (Array.isArray(parsed)) return parsed;
        const params = {
          expected: 'email:send, email:read, received:read, full_access, domain_scope:<domain>',
        };
        context.addIssue({ code: 'custom', message: parsed.problem, params, input: names });
        return z.NEVER;
      }),
  ).meta({
    description:
      'One or more of `email:send`, `email:read`, `received:read`, `full_access` and `domain_scope:<domain>`.',
  }),
  strict: z.boolean().optional().meta({
    description:
      'Whether a send with members that the service does not know is refused; otherwise they are ignored, and named in `X-Postern-Ignored`. By default, only a test key is strict.',
  }),
  stream: streamName.optional().meta({
    description: 'The stream of mail that names none. Without it: `transactional`.',
  }),
  test: z.boolean().optional().meta({
    description:
      'Whether what the key sends is test mail: the same checks, answers, events and webhooks, but nothing leaves the server, costs credits, or counts in suppressions and statistics. Such a key starts with `em_test_`.',
  }),
});

const shownStream = z
  .string()
  .optional()
  .meta({ description: 'The stream of mail that names none. Absent: `transactional`.' });

const key = z
  .object({
    id: z.uuid(),
    label: z.string(),
    hint: z.string().meta({ description: 'The first characters of the key.' }),
    scopes: z.array(z.string()),
    strict: z.boolean().meta({ description: 'Whether sends with unknown members are refused.' }),
    test: z.boolean().meta({ description: 'Whether what the key sends is test mail.' }),
    stream: shownStream,
    createdAt: moment,
    revokedAt: moment.nullable(),
    endsAt: moment.nullable().meta({ description: 'For a key that was replaced: it works until this time.' }),
  })
  .meta({ description: 'An API key, without the secret key itself.' });

const newKeyMembers = {
  id: z.uuid(),
  key: z.string().meta({ description: 'The key. It is shown only in this response.' }),
  label: z.string(),
  scopes: z.array(z.string()),
  strict: z.boolean(),
  test: z.boolean(),
  stream: shownStream,
};

export const keySchemas = {
  Key: key,
  KeysAnswer: success({
    keys: z.array(key).meta({ description: 'Oldest first, including revoked keys.' }),
    next: nextId,
  }),
  NewKeyAnswer: success(newKeyMembers),
  RotatedKeyAnswer: success({
    ...newKeyMembers,
    oldKeyUntil: moment
      .nullable()
      .meta({ description: 'The old key works until this time; null if it was revoked at once.' }),
  }),
};

/** The body of SendGrid's mail/send. Our own rules check the values later, and the paths of both are SendGrid's. */
import { z } from 'zod';
import { pairs, plainAddress, recordOf, scalarText } from '#front/dialects/dialect.ts';
import { shortened } from '#front/http/ignored.ts';

const maxPersonalizations = 1000;
/** In all personalizations together, as SendGrid has it. */
const maxRecipients = 1000;
const maxSubstitutions = 50;
/** SendGrid's limit for one personalization, in bytes. */
const maxSubstitutionBytes = 10_000;

const person = z.object({
  email: plainAddress,
  name: scalarText.nullish(),
});
const people = z.array(person);
const scalar = z.union([z.string(), z.number(), z.boolean()], 'must be a string');

const substitutions = recordOf(scalar)
  .refine(
    (values) => Object.keys(values).length <= maxSubstitutions,
    `must have at most ${maxSubstitutions} tags`,
  )
  .refine(
    (values) => Buffer.byteLength(Object.entries(values).flat().join('')) <= maxSubstitutionBytes,
    'must have at most 10,000 bytes',
  );

const customArgs = pairs.pipe(z.record(z.string(), scalar));

const sendAt = z.int().min(0).max(8_640_000_000_000);

const personalization = z.object({
  to: people.min(1),
  cc: people.nullish(),
  bcc: people.nullish(),
  from: person.nullish(),
  subject: scalarText.nullish(),
  headers: pairs.nullish(),
  substitutions: substitutions.nullish(),
  custom_args: customArgs.nullish(),
  send_at: sendAt.nullish(),
});

const attachment = z.object({
  content: z.unknown(),
  filename: z.unknown(),
  type: scalarText.nullish(),
  disposition: scalarText.nullish(),
  content_id: scalarText.nullish(),
  // The SDK for Node does not rename members inside lists.
  contentId: scalarText.nullish(),
});

const enable = z.object({ enable: z.boolean().nullish() }).nullish();
/** Refuses members that would be missing in the mail unnoticed. */
const missing = (what: string, instead: string) =>
  z.null({ error: `Postern has no ${what}: ${instead}` }).optional();
const mustBeOff = (what: string, instead: string) =>
  enable.refine((given) => !given?.enable, `Postern has no ${what}: ${instead}`);

/** With its parameters, such as the method of an invitation. */
const contentType = z
  .string()
  .regex(
    /^text\/(?:plain|html|x-amp-html|calendar)(?:\s{0,9};[\x20-\x7e]{0,200})?$/i,
    'must be text/plain, text/html, text/x-amp-html or text/calendar',
  );
export const nameOfType = (type: string) => type.split(';')[0]!.trim().toLowerCase();

/** A group is a stream of ours. */
const asm = z.object({ group_id: z.coerce.number(), groups_to_display: z.unknown().optional() });

export const sendRequest = z.object({
  personalizations: z
    .array(z.unknown())
    .min(1)
    .max(maxPersonalizations)
    .pipe(z.array(personalization))
    .refine(
      (all) => all.reduce((count, one) => count + recipientCount(one), 0) <= maxRecipients,
      `must have at most ${maxRecipients} recipients in all`,
    ),
  from: person,
  reply_to: person.nullish(),
  reply_to_list: people.nullish(),
  subject: scalarText.nullish(),
  content: z
    .array(z.object({ type: contentType, value: scalarText.pipe(z.string().min(1)) }))
    .min(1)
    .refine(
      (parts) => new Set(parts.map(({ type }) => nameOfType(type))).size === parts.length,
      'must have each type once',
    ),
  attachments: z.array(attachment).nullish(),
  headers: pairs.nullish(),
  categories: z.union([scalarText, z.array(scalarText)]).nullish(),
  custom_args: customArgs.nullish(),
  send_at: sendAt.nullish(),
  mail_settings: z
    .object({ sandbox_mode: enable, footer: mustBeOff('footers', 'put it into the content') })
    .nullish(),
  tracking_settings: z
    .object({
      click_tracking: enable,
      open_tracking: enable,
      subscription_tracking: mustBeOff('subscription tracking', 'set the header List-Unsubscribe'),
    })
    .nullish(),
  template_id: missing('templates', 'send content'),
  sections: missing('sections', 'put them into the substitutions'),
  asm: asm.nullish(),
  batch_id: missing('batches', 'give each call an Idempotency-Key, or cancel its emails with our own API'),
});

/** Members that nothing reads, such as the group of `asm` beside it or in a personalization. `body` has been checked. */
export function ignoredIn(body: Record<string, unknown>): string[] {
  const unread = (value: unknown, { shape }: z.ZodObject, at = '') =>
    Object.keys((value ?? {}) as object).flatMap((name) =>
      Object.hasOwn(shape, name) ? [] : [`${at}${shortened(name)}`],
    );
  const all = body.personalizations as unknown[];
  return [
    ...unread(body, sendRequest),
    ...unread(body.asm, asm, 'asm.'),
    ...all.flatMap((one, index) => unread(one, personalization, `personalizations.${index}.`)),
  ];
}

export type SendgridRequest = z.output<typeof sendRequest>;
export type Personalization = z.output<typeof personalization>;
export type Person = z.output<typeof person>;

function recipientCount({ to, cc, bcc }: Personalization): number {
  return to.length + (cc?.length ?? 0) + (bcc?.length ?? 0);
}

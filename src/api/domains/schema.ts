/** Sender domains as requests and answers have them: for the OpenAPI document too. */
import { z } from 'zod';
import { tlsFloors } from '../../accounts/domains.ts';
import { toDomain } from '../../mail/address.ts';
import { moment } from '../management.ts';
import { rule } from '../send/schema-rule.ts';

const withoutDot = (text: string) => text.replace(/\.$/, '');

const domainName = z
  .string()
  .check(rule((text) => toDomain(withoutDot(text)) !== null, 'a domain name such as example.com'))
  .transform((text) => toDomain(withoutDot(text))!);

export const newDomain = z.object({
  name: domainName.meta({ description: 'The domain of your senders.', examples: ['example.com'] }),
});

const tls = z.enum(tlsFloors);

export const domainChange = z
  .object({
    tracking: z
      .object({
        openTracking: z.boolean().optional(),
        clickTracking: z.boolean().optional(),
        host: domainName.nullable().optional().meta({
          description: 'Where tracking links lead: a name of yours, a CNAME to this server. Null: none.',
        }),
      })
      .optional()
      .meta({ description: 'What mail from the domain counts, unless a send says otherwise.' }),
    tls: tls.optional().meta({ description: 'The least protection that mail from the domain is sent with.' }),
  })
  .meta({ description: 'What is left out stays.' });

const domain = z
  .object({
    id: z.uuid(),
    name: z.string().meta({ description: 'Its A-label.' }),
    status: z.enum(['pending', 'verified']).meta({ description: 'Mail is sent from one that is verified.' }),
    tracking: z.object({
      openTracking: z.boolean(),
      clickTracking: z.boolean(),
      host: z.string().nullable().meta({ description: "Null: links lead to this service's own name." }),
    }),
    keys: z
      .array(
        z.object({
          selector: z.string(),
          algorithm: z.enum(['rsa', 'ed25519']),
          status: z.enum(['pending', 'signing', 'retired']),
          keepUntil: moment.nullable().meta({
            description: 'Of a retired one: how long its record must stay, for mail that is on its way.',
          }),
        }),
      )
      .meta({ description: 'The DKIM keys. One that is pending signs as soon as its record is found.' }),
    tls,
    effectiveTls: tls.meta({
      description: 'What holds: the stricter of `tls` and what the organization demands.',
    }),
    createdAt: moment,
    verifiedAt: moment.nullable(),
    checkedAt: moment.nullable().meta({ description: 'When its records were looked for last.' }),
  })
  .meta({ description: 'A domain that the organization sends from.' });

const record = z.object({
  type: z.enum(['TXT', 'MX', 'CNAME']),
  name: z.string(),
  value: z.string(),
  purpose: z.enum(['dkim', 'spf', 'return_path', 'dmarc', 'dmarc_reports', 'tracking']),
  note: z.string().meta({ description: 'What it is for, and what to do about one that is there already.' }),
  required: z.boolean().meta({ description: 'Whether the domain is verified by it; the others are advice.' }),
});

const domainAnswer = z.object({
  success: z.literal(true),
  domain,
  records: z.array(record).meta({ description: 'The DNS records to publish.' }),
});

const domainsAnswer = z.object({
  success: z.literal(true),
  domains: z.array(domain).meta({ description: 'All of them, by name.' }),
});

const verifyAnswer = z.object({
  success: z.literal(true),
  domain,
  records: z
    .array(
      record.extend({
        ok: z.boolean().meta({ description: 'Whether DNS has it.' }),
        found: z.array(z.string()).meta({ description: 'What DNS has there, or why it gave no answer.' }),
      }),
    )
    .meta({ description: 'The DNS records as they were found.' }),
});

export type DomainOut = z.input<typeof domain>;

export const domainSchemas = {
  Domain: domain,
  DomainAnswer: domainAnswer,
  DomainsAnswer: domainsAnswer,
  VerifyAnswer: verifyAnswer,
};

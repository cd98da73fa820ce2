/** The schemas of sender domains in requests and responses. */
import { z } from 'zod';
import { recordPurposes, tlsFloors } from '#accounts/domains.ts';
import { moment, success } from '#front/api/management.ts';
import { rule } from '#front/http/schema-rule.ts';
import { toDomain } from '#platform/values/address.ts';
import { trimBlanks, withoutHidden } from '#platform/values/hidden-characters.ts';

const withoutDot = (text: string) => text.replace(/\.$/, '');

const domainName = z
  .string()
  .overwrite(trimBlanks)
  .check(
    rule((text) => toDomain(withoutDot(text)) !== null, 'a domain name such as example.com', withoutHidden),
  )
  .transform((text) => toDomain(withoutDot(text))!);

export const newDomain = z.object({
  name: domainName.meta({ description: 'The domain to send from.', examples: ['example.com'] }),
});

const tls = z.enum(tlsFloors);

export const domainChange = z
  .object({
    tracking: z
      .object({
        openTracking: z.boolean().optional(),
        clickTracking: z.boolean().optional(),
        host: domainName.nullable().optional().meta({
          description:
            'The host name of tracking links: a name of yours with a CNAME to this server. Null for none.',
        }),
      })
      .optional()
      .meta({ description: 'What is tracked in email from the domain, unless a send overrides it.' }),
    tls: tls.optional().meta({ description: 'The minimum TLS protection for email from the domain.' }),
    receives: z.boolean().optional().meta({
      description: 'Whether email for the domain is received, as its routes say, while it is verified.',
    }),
  })
  .meta({ description: 'Members that are left out do not change.' });

const domain = z
  .object({
    id: z.uuid(),
    name: z.string().meta({ description: 'The name in ASCII (A-labels).' }),
    status: z
      .enum(['pending', 'verified'])
      .meta({ description: 'You can send only from a verified domain.' }),
    tracking: z.object({
      openTracking: z.boolean(),
      clickTracking: z.boolean(),
      host: z.string().nullable().meta({ description: "Null: links use this service's own name." }),
    }),
    keys: z
      .array(
        z.object({
          selector: z.string(),
          algorithm: z.enum(['rsa', 'ed25519']),
          status: z.enum(['pending', 'signing', 'retired']),
          keepUntil: moment.nullable().meta({
            description:
              'For a retired key: its record must stay published until this time, for email in transit.',
          }),
        }),
      )
      .meta({ description: 'The DKIM keys. A pending key signs as soon as its record is found.' }),
    returnPath: z.string().nullable().meta({
      description:
        'The name under the domain at which bounces arrive, while its record is found; null: the one of this server.',
    }),
    tls,
    effectiveTls: tls.meta({
      description: 'The protection in effect: the stricter of `tls` and the setting of the organization.',
    }),
    receives: z
      .boolean()
      .meta({ description: 'Whether email for the domain is received while it is verified.' }),
    mxMissingSince: moment.nullable().meta({
      description:
        'Since when the MX record of a domain that receives is missing or leads elsewhere; null if it does not.',
    }),
    createdAt: moment,
    verifiedAt: moment.nullable(),
    checkedAt: moment.nullable().meta({ description: 'When the DNS records were last looked up.' }),
    failingSince: moment.nullable().meta({
      description:
        'When the DKIM record of a verified domain was first found missing or wrong; null if it is right.',
    }),
  })
  .meta({ description: 'A domain to send from.' });

const record = z.object({
  type: z.enum(['TXT', 'MX', 'CNAME']),
  name: z.string(),
  value: z.string(),
  purpose: z.enum(recordPurposes),
  note: z
    .string()
    .meta({ description: 'The purpose of the record, and what to do if such a record exists already.' }),
  required: z
    .boolean()
    .meta({ description: 'Whether the verification needs the record; the others are recommended.' }),
});

export const domainSchemas = {
  Domain: domain,
  DomainAnswer: success({
    domain,
    records: z.array(record).meta({ description: 'The DNS records to publish.' }),
  }),
  DomainsAnswer: success({
    domains: z.array(domain).meta({ description: 'All domains, ordered by name.' }),
  }),
  VerifyAnswer: success({
    domain,
    records: z
      .array(
        record.extend({
          ok: z
            .boolean()
            .meta({ description: 'Whether DNS has the record, as those who look it up read it.' }),
          found: z
            .array(z.string())
            .meta({ description: 'The values that DNS has at this name, or why the lookup failed.' }),
          problem: z.string().nullable().meta({
            description:
              'What is wrong with these values and what to do; a record that is ok can have one, too. Null if nothing is wrong, or nothing was found.',
          }),
        }),
      )
      .meta({ description: 'The DNS records and the values that were found.' }),
  }),
};

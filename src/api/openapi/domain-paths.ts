/** /api/public/domains in the document. */
import { recordsFor } from '../../accounts/domains.ts';
import { badMember, doneAnswer, exampleId, inPath, managing, missing, one } from './management-parts.ts';
import type { Document } from './openapi-document.ts';
import { content } from './responses.ts';

const tag = 'Domains';
const time = '2026-03-02T08:15:30.120Z';

const pending = {
  ...{ id: exampleId, name: 'example.com', status: 'pending' },
  tracking: { openTracking: false, clickTracking: false, host: null as string | null },
  keys: [{ selector: 'pstn4f2a91c0', algorithm: 'rsa', status: 'signing', keepUntil: null }],
  ...{ tls: 'opportunistic', effectiveTls: 'opportunistic' },
  ...{ createdAt: time, verifiedAt: null as string | null, checkedAt: null as string | null },
};
const keys = { dkimSelector: 'pstn4f2a91c0', dkimPublicKey: 'MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA' };
const names = { hostname: 'mail.example.com', returnPathDomain: 'mail.example.com' };
const records = recordsFor({ name: 'example.com', ...keys }, names);
const tracking = { openTracking: true, clickTracking: false, host: 'link.example.com' };
const changed = { ...pending, tracking, tls: 'encrypted', effectiveTls: 'encrypted' };
const changedRecords = recordsFor({ name: 'example.com', ...keys, trackingHost: tracking.host }, names);
const verified = { ...pending, status: 'verified', verifiedAt: time, checkedAt: time };
const looked = records.map((record) => {
  const ok = record.purpose === 'dkim';
  return { ...record, ok, found: ok ? [record.value] : [] };
});

const nameInPath = inPath('name', 'The domain.', 'example.com');
const badName = {
  when: 'The name in the path is not a domain name, or the body is not JSON.',
  message: 'The name in the path is not a domain name.',
};
const errors = { BAD_REQUEST: badName, NOT_FOUND: missing('domain') };
const [ofAll, ofOne] = ['HEAD, GET, POST', 'HEAD, GET, PATCH, DELETE'];

export const domainPaths: Document['paths'] = {
  '/api/public/domains': {
    get: managing({
      ...{ operationId: 'listDomains', tag, summary: 'List domains', description: 'All sender domains.' },
      ...{ answerIs: 'The domains.', allow: ofAll },
      answer: one('DomainsAnswer', 'One domain', { success: true, domains: [pending] }),
    }),
    post: managing({
      ...{ operationId: 'addDomain', tag, summary: 'Register a domain' },
      description:
        'Registers a domain to send from, with a DKIM key of its own. Publish the records that are answered, then have them ' +
        'verified. An organization may have a thousand.',
      body: one('NewDomain', 'A domain', { name: 'example.com' }),
      ...{ answerIs: 'The domain, and the DNS records to publish.', allow: ofAll },
      answer: one('DomainAnswer', 'Registered', { success: true, domain: pending, records }),
      errors: {
        VALIDATION_ERROR: badMember('name', 'string', 'undefined'),
        BAD_REQUEST: {
          when: 'The organization has the domain already, or the body is not JSON.',
          message: 'The domain example.com is registered in this organization already.',
        },
      },
    }),
  },
  '/api/public/domains/{name}': {
    get: managing({
      ...{ operationId: 'getDomain', tag, summary: 'Show a domain', parameters: [nameInPath] },
      description: 'A domain, and the DNS records to publish for it.',
      ...{ answerIs: 'The domain.', allow: ofOne, errors },
      answer: one('DomainAnswer', 'One that is not verified yet', {
        success: true,
        domain: pending,
        records,
      }),
    }),
    patch: managing({
      ...{ operationId: 'changeDomain', tag, summary: 'Change a domain', parameters: [nameInPath] },
      description: 'Sets what mail from the domain counts, and the least protection that it is sent with.',
      body: content('DomainChange', {
        example: { summary: 'Count opens; demand TLS', value: { tracking, tls: 'encrypted' } },
      }),
      ...{ answerIs: 'The domain as it is now.', allow: ofOne },
      answer: one('DomainAnswer', 'Changed', { success: true, domain: changed, records: changedRecords }),
      errors: { VALIDATION_ERROR: badMember('tracking', 'object', 'boolean'), ...errors },
    }),
    delete: managing({
      ...{ operationId: 'removeDomain', tag, summary: 'Remove a domain', parameters: [nameInPath] },
      description: 'Forgets the domain and its DKIM key; sending from it ends.',
      ...{ answerIs: 'It is gone.', answer: doneAnswer, allow: ofOne, errors },
    }),
  },
  '/api/public/domains/{name}/verify': {
    post: managing({
      ...{ operationId: 'verifyDomain', tag, summary: 'Verify a domain', parameters: [nameInPath] },
      description:
        'Looks whether DNS has the records. The domain is verified when its DKIM record is found. Where DNS gives no answer ' +
        'the status stays as it is.',
      ...{ answerIs: 'The domain, and what was found.', allow: 'POST', errors },
      answer: one('VerifyAnswer', 'DKIM was found', { success: true, domain: verified, records: looked }),
    }),
  },
};

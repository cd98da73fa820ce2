/** Examples of sender domains for the OpenAPI document. */
import { recordsFor } from '../../accounts/domains.ts';
import { exampleId, exampleTime } from '../management.ts';

const pending = {
  id: exampleId,
  name: 'example.com',
  status: 'pending',
  tracking: { openTracking: false, clickTracking: false, host: null as string | null },
  keys: [{ selector: 'pstn4f2a91c0', algorithm: 'rsa', status: 'signing', keepUntil: null }],
  tls: 'opportunistic',
  effectiveTls: 'opportunistic',
  createdAt: exampleTime,
  verifiedAt: null as string | null,
  checkedAt: null as string | null,
};

const domain = {
  name: 'example.com',
  dkimSelector: 'pstn4f2a91c0',
  dkimPublicKey: 'MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA',
};
const names = { hostname: 'mail.example.com', returnPathDomain: 'mail.example.com' };
const records = recordsFor(domain, names);
const tracking = { openTracking: true, clickTracking: false, host: 'link.example.com' };

export const change = { tracking, tls: 'encrypted' };

export const pendingDomain = { domain: pending, records };

export const listedDomains = { domains: [pending] };

export const changedDomain = {
  domain: { ...pending, tracking, tls: 'encrypted', effectiveTls: 'encrypted' },
  records: recordsFor({ ...domain, trackingHost: tracking.host }, names),
};

export const verifiedDomain = {
  domain: { ...pending, status: 'verified', verifiedAt: exampleTime, checkedAt: exampleTime },
  records: records.map((record) => {
    const ok = record.purpose === 'dkim';
    return { ...record, ok, found: ok ? [record.value] : [] };
  }),
};

/**
 * The sender domain of test mail that needs no domain of one's own: any address at postern.test. Its DKIM key lives in memory
 * only, because test mail leaves no server and nobody looks the key up.
 */

import type { DomainRecord } from '#accounts/rows/domains-table.ts';
import type { Secrets } from '#platform/base/secrets.ts';
import { testDomain } from '#platform/values/test-route.ts';
import { newDkimKey } from './domains.ts';
import { createSeal, type Seal } from './seal.ts';

export function createTestSender(secrets: Secrets): () => Promise<DomainRecord> {
  let made: Promise<DomainRecord> | undefined;
  return () => {
    made ??= makeDomain(createSeal(secrets));
    return made;
  };
}

async function makeDomain(seal: Seal): Promise<DomainRecord> {
  const { selector, publicKey, privateKey } = await newDkimKey();
  return {
    id: '',
    orgId: '',
    name: testDomain,
    status: 'verified',
    dkimSelector: selector,
    dkimPublicKey: publicKey,
    dkimPrivateKey: seal.close(privateKey),
    otherKeys: [],
    openTracking: false,
    clickTracking: false,
    trackingHost: null,
    tls: 'opportunistic',
    receives: false,
    mxMissingSince: null,
    organizationTls: 'opportunistic',
    createdAt: 0,
    verifiedAt: 0,
    checkedAt: null,
    checkAt: null,
    failures: 0,
    failingSince: null,
    returnPath: 'none',
  };
}

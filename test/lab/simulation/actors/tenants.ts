/** The organizations of a run: each with a verified domain, a key and a webhook, inserted as the command line would. */
import { generateKeyPairSync } from 'node:crypto';
import { newKey } from '#accounts/api-keys.ts';
import { setQuota } from '#accounts/rows/credit-ledger.ts';
import { insertDomain, setDomainStatus } from '#accounts/rows/domains-table.ts';
import { insertKey } from '#accounts/rows/keys.ts';
import { insertOrganization, setLimits } from '#accounts/rows/organizations.ts';
import { setDomainReceives } from '#accounts/rows/receiving-domains.ts';
import { createSeal } from '#accounts/seal.ts';
import { addRoute } from '#mail/received/define-route.ts';
import { newStandardSecret } from '#mail/webhooks/formats/standard-format.ts';
import { insertWebhook } from '#mail/webhooks/rows/webhooks.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import type { Names } from '../machine/names.ts';
import { scheduler } from '../machine/scheduler.ts';

export interface Tenant {
  number: number;
  orgId: string;
  name: string;
  key: string;
  domain: string;
  emailsPerDay: number | null;
}

export interface TenantPlan {
  number: number;
  emailsPerDay: number | null;
  webhookUrl: string;
}

/** Short, because RSA is most of the cost of a mail, and no order depends on it. */
const modulusLength = 1024;

export async function insertTenant(
  db: Db,
  { config, names }: { config: Config; names: Names },
  { number, emailsPerDay, webhookUrl }: TenantPlan,
): Promise<Tenant> {
  const now = scheduler.wallClock();
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength });
  const encoded = publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
  const { key, hash, hint } = newKey({ isTest: false });
  const domain = `org${number}.example`;
  const name = `Org ${number}`;
  const seal = createSeal(loadSecrets(config));
  const orgId = await db.transaction(async (trx) => {
    const id = await insertOrganization(trx, name, now);
    await setQuota(trx, id, 1_000_000, now);
    await setLimits(trx, id, { requestsPerSecond: null, requestsPerDay: null, emailsPerDay });
    await insertKey(
      trx,
      { orgId: id, label: 'simulated', hash, hint, scopes: ['full_access'], isTest: false },
      now,
    );
    const domainId = await insertDomain(
      trx,
      {
        orgId: id,
        name: domain,
        dkimSelector: 'sim',
        dkimPublicKey: encoded,
        dkimPrivateKey: seal.close(privateKey.export({ type: 'pkcs8', format: 'pem' }) as string),
      },
      now,
    );
    await setDomainStatus(trx, domainId!, 'verified', now);
    await setDomainReceives(trx, domainId!, true);
    return id;
  });
  await addRoute(db, orgId, { pattern: domain, action: 'webhook' }, now);
  await insertWebhook(
    db,
    {
      orgId,
      url: webhookUrl,
      types: [],
      format: 'standard',
      secret: seal.close(newStandardSecret()),
      publicKey: null,
    },
    now,
  );
  names.set({
    [`sim._domainkey.${domain}`]: { TXT: [[`v=DKIM1; k=rsa; p=${encoded}`]] },
    [domain]: {
      TXT: [[`v=spf1 ip4:${config.httpHost} -all`]],
      MX: [{ exchange: `mx.${domain}`, priority: 10 }],
    },
    [`_dmarc.${domain}`]: { TXT: [['v=DMARC1; p=none']] },
  });
  return { number, orgId, name, key, domain, emailsPerDay };
}

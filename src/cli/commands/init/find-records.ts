/**
 * Prints all DNS records of the server and the domain once, as text for zone files and as a table of those that DNS has
 * already. Then waits for the required ones, and verifies the domain.
 */
import { type CheckedRecord, checkRecords, type WantedRecord } from '#accounts/check-records.ts';
import { verifyDomain } from '#accounts/domain-registration.ts';
import { recordsFor } from '#accounts/domains.ts';
import { serverRecords } from '#accounts/server-records.ts';
import { zoneText } from '#accounts/zone-text.ts';
import { printRecordStates } from '#cli/render/domain-view.ts';
import { waitFor } from '#cli/wait-for.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import { type FindingDraft, failure, ok, warning } from '#operate/doctor/finding.ts';
import type { SetUp } from './set-up.ts';
import type { Step } from './step.ts';
import { findOwnDomain } from './tenant.ts';

type Checked = CheckedRecord<WantedRecord>;

export function recordsStep(setUp: SetUp, needs: Step[]): Step {
  const { context, shown } = setUp;

  async function look(): Promise<Checked[]> {
    const { dnsServers } = context.config();
    return checkRecords(await wantedRecords(setUp), createResolver(dnsServers));
  }

  return {
    what: 'find the DNS records',
    needs,
    async isDone() {
      const checked = await look();
      const zone = zoneText(checked);
      Object.assign(shown, { zone, records: checked });
      if (isEnough(checked)) await verify(setUp);
      if (checked.every((record) => record.ok)) return ok(`all ${checked.length} are there`);
      if (!context.out.json) {
        context.out.write(`\n${zone}\n`);
        printRecordStates(context.out, checked);
        context.out.write('\n');
      }
      return isEnough(checked) ? judged(checked) : null;
    },
    async do() {
      let checked: Checked[] = [];
      const found = await waitFor(
        setUp,
        () => describe(checked),
        async () => {
          checked = await look();
          return isEnough(checked) ? checked : null;
        },
      );
      shown.records = checked;
      if (found !== null) await verify(setUp);
      return judged(checked);
    },
    cure: 'publish the records above; the server looks for them by itself',
  };
}

/** Without the addresses there is no certificate, and without DKIM nothing is sent. */
const isEnough = (checked: Checked[]) => checked.every((record) => record.ok || !record.required);

const missingOf = (checked: Checked[]) => checked.filter((record) => !record.ok);

const nameOf = ({ type, name }: WantedRecord) => `${type} ${name}`;

function describe(checked: Checked[]): string {
  const missing = missingOf(checked).toSorted((one, other) => Number(other.required) - Number(one.required));
  return `DNS: ${checked.length - missing.length} of ${checked.length} records are there, not yet ${nameOf(missing[0]!)}`;
}

function judged(checked: Checked[]): FindingDraft {
  const missing = missingOf(checked);
  if (missing.length === 0) return ok(`all ${checked.length} are there`);
  const required = missing.filter((record) => record.required);
  const found = `${missing.length} of ${checked.length} are missing or not right`;
  if (required.length > 0)
    return failure(
      `${found}; needed: ${required.map(nameOf).join(', ')}`,
      'publish them, then run init again',
    );
  const isReverse = missing.some(({ type, name }) => type === 'PTR' && name.endsWith('.ip6.arpa'));
  const ipv4 = checked.find(({ type }) => type === 'A')?.value ?? 'the IPv4 address';
  const withoutReverse = `; if the provider cannot set the reverse name of an IPv6 address, remove its AAAA record and set POSTERN_MTA_SOURCES=${ipv4}`;
  return warning(
    `${found}: ${missing.map(nameOf).join(', ')}`,
    `publish these too: mail can be sent, but receivers look for them${isReverse ? withoutReverse : ''}`,
  );
}

/** Both have some records in common. A domain that is not registered yet has no DKIM key. */
async function wantedRecords(setUp: SetUp): Promise<WantedRecord[]> {
  const config = setUp.context.config();
  const domain = await findOwnDomain(setUp);
  const all = [...serverRecords(config, setUp.addresses), ...(domain ? recordsFor(domain, config) : [])];
  const textOf = ({ type, name, value }: WantedRecord) => `${type} ${name} ${value}`;
  return [...new Map(all.map((record) => [textOf(record), record])).values()];
}

async function verify(setUp: SetUp): Promise<void> {
  const { context } = setUp;
  const domain = (await findOwnDomain(setUp))!;
  const config = context.config();
  const resolve = createResolver(config.dnsServers);
  const terms = { names: config, resolve, now: context.now(), keepMs: config.mtaMaxAge };
  await verifyDomain(await context.db(), domain, terms);
}

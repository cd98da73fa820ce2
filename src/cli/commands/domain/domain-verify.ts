/** `postern domain verify`: what DNS has of a domain's records, at once or when the DKIM record appears. */
import type { Command } from 'commander';
import {
  type CheckedRecord,
  checkRecords,
  isUnknown,
  missingRecords,
  statusAfter,
} from '#accounts/check-records.ts';
import { verifyDomain } from '#accounts/domain-registration.ts';
import { recordsFor } from '#accounts/domains.ts';
import type { DomainRecord } from '#accounts/rows/domains-table.ts';
import { spanOption } from '#cli/args/arguments.ts';
import { type OwnerOption, requireDomain, requireOwner } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { recordsBlock } from '#cli/render/domain-view.ts';
import { waitFor } from '#cli/wait-for.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';

interface VerifyOptions extends OwnerOption {
  wait?: true;
  timeout: number;
}

export function verifyCommand(
  named: (command: string, description: string) => Command,
  context: CommandContext,
): void {
  named(
    'verify',
    'Check the DNS records; a pending domain is verified once its DKIM record is found. Exit with 1 if it is missing.',
  )
    .option('--wait', 'look every five seconds until the DKIM record is found')
    .addOption(spanOption('--timeout <DURATION>', 'how long --wait waits at most', '1h'))
    .action((name: string, options: VerifyOptions) => verify(context, name, options));
}

/** Bounds the queries of `domain verify --wait`. */
const pollMs = 5_000;

/** Until the records that a verification needs are found; verifyDomain then looks at all of them. */
async function waitForRecords(context: CommandContext, domain: DomainRecord, waitMs: number): Promise<void> {
  const { dnsServers } = context.config();
  const resolve = createResolver(dnsServers);
  const required = recordsFor(domain, context.config()).filter((record) => record.required);
  const stopped = context.abortOn('SIGINT', 'SIGTERM');
  const [first] = required;
  await waitFor(
    { context, stopped, waitMs, pollMs, onStop: 'ends it' },
    () => `${first!.type} ${first!.name}`,
    async () => (statusAfter(await checkRecords(required, resolve)) === 'verified' ? true : null),
  );
}

async function verify(
  context: CommandContext,
  name: string,
  { org, wait, timeout }: VerifyOptions,
): Promise<void> {
  const { db, out, config, now } = context;
  const found = await requireDomain(await db(), await requireOwner(context, org), name);
  if (wait) await waitForRecords(context, found, timeout);
  const terms = {
    names: config(),
    resolve: createResolver(config().dnsServers),
    now: now(),
    keepMs: config().mtaMaxAge,
  };
  const { domain, records, isKnown } = await verifyDomain(await db(), found, terms);
  const { status } = domain;
  const fields = { name, status: { state: status } };
  out.print({ name, status, records }, { fields }, recordsBlock(records));
  if (!isKnown)
    out.warn(`${name} stays ${status}: ${failedLookUps(records)}; the DNS lookups failed, try again later`);
  const missing = missingRecords(records);
  if (status === 'verified' && missing.length > 0)
    out.warn(
      `${name} stays verified, but ${recordNames(missing)} is missing or wrong: receivers may refuse its mail`,
    );
  if (status !== 'verified' || missing.length > 0) context.exitCode = 1;
}

function recordNames(records: CheckedRecord[]): string {
  return records.map(({ type, name }) => `${type} ${name}`).join(', ');
}

function failedLookUps(records: CheckedRecord[]): string {
  const failed = records.filter((record) => record.required && isUnknown(record));
  return failed.map(({ type, name, found }) => `${type} ${name}: ${found[0]}`).join(', ');
}

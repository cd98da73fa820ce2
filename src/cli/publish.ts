/**
 * Publishes records at a DNS provider (operate/publish/), for `domain add`, `domain publish`, `doctor --fix` and `init`: shows the
 * difference, asks, writes, and says what became of each record.
 */
import { Option } from 'commander';
import type { ZoneRecord } from '#accounts/zone-text.ts';
import { choice } from '#cli/args/arguments.ts';
import { type Consent, isWanted } from '#cli/args/consent.ts';
import { type OutputBlock, sanitize } from '#cli/render/output.ts';
import { type DnsProvider, type Planned, planChanges } from '#operate/publish/plan-changes.ts';
import { openProvider, type ProviderName, providerNames } from '#operate/publish/providers.ts';
import type { CommandContext } from './command-context.ts';
import { Failure } from './failure.ts';

/** `value` writes the names of the providers as a value that is required or optional. */
export const providerOption = (flag: string, value: (names: string) => string, description: string) =>
  new Option(`${flag} ${value(providerNames.join('|'))}`, description).argParser(
    choice('a DNS provider', providerNames),
  );

/** Null: the only one of the settings. A Failure says what is missing. */
export function openDnsProvider(context: CommandContext, wanted: ProviderName | null): Promise<DnsProvider> {
  return orFailure(openProvider(context.config(), wanted, context.now));
}

interface Published {
  action: Planned['action'];
  record: ZoneRecord;
  /** Why nothing was written, or null. */
  problem: string | null;
}

/** Null: it is a dry run, and is printed. */
export async function publishRecords(
  context: CommandContext,
  dns: DnsProvider,
  records: ZoneRecord[],
  consent: Consent,
): Promise<Published[] | null> {
  const { out } = context;
  out.progress(`reading the records at ${dns.name}`);
  const planned = await orFailure(planChanges(dns, records));
  const changes = planned.filter(({ action }) => action === 'add' || action === 'replace');
  if (changes.length > 0 || consent.dryRun) {
    const seen = planned.map(notWritten);
    if (!consent.dryRun) for (const line of linesOf(seen)) out.note(line);
    const count = changes.length === 1 ? '1 record' : `${changes.length} records`;
    const effect = {
      question: `write ${count} at ${dns.name}`,
      fields: Object.fromEntries(
        seen.map(({ action, record, problem }) => [
          `${action} ${record.type} ${record.name}`,
          problem ?? record.value,
        ]),
      ),
      document: publishedDocument(seen),
      isForGood: true,
    };
    if (!(await isWanted(context, effect, consent))) return null;
  }
  const published: Published[] = [];
  for (const [index, plan] of planned.entries()) {
    out.progress(`writing: ${index} of ${planned.length}`);
    published.push(await write(dns, plan));
  }
  out.progress('');
  if (published.some(({ action, problem }) => action !== 'leave' && problem !== null)) context.exitCode = 1;
  return published;
}

const notWritten = (plan: Planned): Published => ({
  action: plan.action,
  record: plan.record,
  problem: plan.action === 'leave' ? plan.reason : null,
});

async function write(dns: DnsProvider, plan: Planned): Promise<Published> {
  if (plan.action === 'add' || plan.action === 'replace') {
    const problem = await dns.write(plan).then(
      () => null,
      (error: Error) => error.message,
    );
    return { action: plan.action, record: plan.record, problem };
  }
  return notWritten(plan);
}

export function publishedDocument(published: Published[]) {
  return { published: published.map(({ action, record, problem }) => ({ action, ...record, problem })) };
}

export function publishedBlock(published: Published[]): OutputBlock {
  return {
    lines: linesOf(published),
    rows: published.map(({ action, record: { type, name, value }, problem }) => [
      action,
      type,
      name,
      value,
      problem ?? '',
    ]),
  };
}

const words = { add: '+ add', replace: '~ replace', keep: '= keep', leave: '! left' };

function linesOf(published: Published[]): string[] {
  return published.flatMap(({ action, record: { type, name, value }, problem }) => [
    `${words[action]}  ${type}  ${name}`,
    `    ${sanitize(value)}`,
    ...(problem === null ? [] : [`    not written: ${sanitize(problem)}`]),
  ]);
}

async function orFailure<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw new Failure((error as Error).message);
  }
}

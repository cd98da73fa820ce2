/** Domains and their DNS records. A record's value is never cut or wrapped, because it is copied. */
import { styleText } from 'node:util';
import { type CheckedRecord, isUnknown, type WantedRecord } from '#accounts/check-records.ts';
import { type DnsRecord, demandedTls, dkimKeys } from '#accounts/domains.ts';
import type { DomainRecord } from '#accounts/rows/domains-table.ts';
import { returnPathInUse } from '#accounts/rows/return-paths.ts';
import { iso, isoOrNull } from '#platform/base/clock.ts';
import { type Cell, coloured, dim, type Output, type OutputBlock, sanitize } from './output.ts';
import { wrap } from './width.ts';

export function domainDocument(domain: DomainRecord) {
  return {
    id: domain.id,
    name: domain.name,
    status: domain.status,
    keys: dkimKeys(domain).map(({ keepUntil, ...key }) => ({ ...key, keepUntil: isoOrNull(keepUntil) })),
    tracking: { opens: domain.openTracking, clicks: domain.clickTracking, host: domain.trackingHost },
    returnPath: returnPathInUse(domain),
    ...tlsDocument(domain),
    receives: domain.receives,
    mxMissingSince: isoOrNull(domain.mxMissingSince),
    createdAt: iso(domain.createdAt),
    verifiedAt: isoOrNull(domain.verifiedAt),
    checkedAt: isoOrNull(domain.checkedAt),
    failingSince: isoOrNull(domain.failingSince),
  };
}

export function printDomains(out: Output, domains: DomainRecord[]): void {
  out.print(domains.map(domainDocument), {
    head: ['DOMAIN', 'STATUS', 'OPENS', 'CLICKS', 'CREATED', 'CHECKED'],
    rows: domains.map((domain) => [
      domain.name,
      { state: domain.status },
      domain.openTracking ? 'on' : 'off',
      domain.clickTracking ? 'on' : 'off',
      { time: domain.createdAt, past: true },
      { time: domain.checkedAt, past: true },
    ]),
    empty: 'There is no domain yet; `postern domain add NAME --org ORG` registers one.',
  });
}

export function domainBlocks(domain: DomainRecord, records: DnsRecord[]): OutputBlock[] {
  const fields: Record<string, Cell> = {
    id: domain.id,
    name: domain.name,
    status: { state: domain.status },
    opens: domain.openTracking ? 'on' : 'off',
    clicks: domain.clickTracking ? 'on' : 'off',
    ...(domain.trackingHost && { 'links at': domain.trackingHost }),
    'return path': returnPathInUse(domain) ?? 'of the server',
    TLS: tlsText(domain),
    receives: domain.receives ? 'on' : 'off',
    ...(domain.mxMissingSince && { 'MX missing since': { time: domain.mxMissingSince, past: true } }),
    created: { time: domain.createdAt, past: true },
    checked: { time: domain.checkedAt, past: true },
    ...(domain.failingSince && { 'DKIM missing since': { time: domain.failingSince, past: true } }),
  };
  return [{ fields }, recordsBlock(records)];
}

/** The level set for the domain, and the level in force: its organization may demand more. */
export function tlsDocument(domain: DomainRecord) {
  return { tls: domain.tls, effectiveTls: demandedTls(domain) };
}

export function tlsText(domain: DomainRecord): string {
  const effective = demandedTls(domain);
  return effective === domain.tls ? effective : `${domain.tls}; its organization ${effective}`;
}

export function recordsBlock(records: (DnsRecord | CheckedRecord)[]): OutputBlock {
  return {
    lines: records.map(recordLines).join('\n\n').split('\n'),
    rows: records.map((record) => [
      record.type,
      record.name,
      record.value,
      record.purpose,
      record.required ? 'required' : 'advised',
      ...('ok' in record ? [{ state: stateOf(record) }, record.found.join(' | '), record.problem ?? ''] : []),
    ]),
  };
}

/** Whether DNS has each record, a line each; then the problems. */
export function printRecordStates(out: Output, records: CheckedRecord<WantedRecord>[]): void {
  out.print(null, {
    head: ['STATE', 'TYPE', 'NAME', 'PURPOSE'],
    rows: records.map((record) => [
      { state: stateOf(record) },
      record.type,
      record.name,
      record.required ? `${record.purpose} (required)` : record.purpose,
    ]),
    empty: '',
  });
  const problems = records.flatMap(({ type, name, problem }) =>
    problem ? [`${type} ${name}: ${problem}`] : [],
  );
  if (problems.length > 0)
    out.print(null, {
      lines: problems.flatMap((text) => wrap(sanitize(text).split(' '), out.columns)),
      rows: problems.map((text) => ['problem', text]),
    });
}

function recordLines(record: DnsRecord | CheckedRecord): string {
  const title = [
    styleText('bold', `${record.type}  ${record.name}`),
    dim(record.required ? 'required' : 'advised'),
  ];
  const found = 'ok' in record ? foundLines(record) : [];
  return [title.join('  '), `  ${record.value}`, `  ${dim(record.note)}`, ...found].join('\n');
}

function foundLines(record: CheckedRecord): string[] {
  const state = stateOf(record);
  const problem = record.problem === null ? [] : [`  ${sanitize(record.problem)}`];
  if (state === 'found') return [`  ${coloured(state)}`, ...problem];
  const found =
    record.found.length === 0 ? 'no such record' : record.found.map(sanitize).join('\n           ');
  return [`  ${coloured(state)}  ${found}`, ...problem];
}

function stateOf(record: CheckedRecord<WantedRecord>): 'found' | 'wrong' | 'missing' | 'unknown' {
  if (isUnknown(record)) return 'unknown';
  if (record.ok) return 'found';
  return record.found.length === 0 ? 'missing' : 'wrong';
}

/** `postern domain reports`: reports about a domain's mail (DMARC) and about TLS sessions with its mail hosts (TLS-RPT). */
import type { Command } from 'commander';
import { domain as domainArgument, lines } from '#cli/args/arguments.ts';
import type { CommandContext } from '#cli/command-context.ts';
import type { Cell, Output, OutputBlock } from '#cli/render/output.ts';
import type { DmarcReport, TlsReport } from '#mail/returned/aggregate-report.ts';
import { listAllReports, type ReportRecord } from '#mail/returned/rows/domain-reports-table.ts';
import { iso } from '#platform/base/clock.ts';

const defaultLimit = 50;
const maxReports = 1000;

export function reportsCommand(domain: Command, { db, out }: CommandContext): void {
  domain
    .command('reports')
    .description('Show the DMARC and TLS reports that receivers sent about a domain, newest first.')
    .argument('<NAME>', 'the domain', domainArgument)
    .option('--limit <N>', 'how many at most', lines(1, maxReports), defaultLimit)
    .action(async (name: string, { limit }: { limit: number }) => {
      printReports(out, name, await listAllReports(await db(), name, limit));
    });
}

function printReports(out: Output, name: string, records: ReportRecord[]): void {
  const dmarc = records.flatMap(({ report }) => (report.kind === 'dmarc' ? [report] : []));
  const tls = records.flatMap(({ report }) => (report.kind === 'tls' ? [report] : []));
  const documents = records.map(({ receivedAt, report: { beginsAt, endsAt, ...report } }) => ({
    ...report,
    beginsAt: iso(beginsAt),
    endsAt: iso(endsAt),
    receivedAt: iso(receivedAt),
  }));
  const empty = `No reports on ${name} have arrived. docs/deliverability.md lists the DNS records that request them. \`postern returned list\` shows mail to dmarc@ and tls-reports@ that could not be read, with the reason.`;
  const none: OutputBlock = { head: [], rows: [], empty };
  const blocks = [...dmarcBlocks(dmarc), ...tlsBlocks(tls)];
  out.print(documents, ...(blocks.length === 0 ? [none] : blocks));
}

function dmarcBlocks(reports: DmarcReport[]): OutputBlock[] {
  if (reports.length === 0) return [];
  const failing = reports.flatMap((report) =>
    report.sources.filter(({ dkim, spf }) => !dkim && !spf).map((source) => ({ ...source, report })),
  );
  const table: OutputBlock = {
    head: ['DMARC REPORT OF', 'DOMAIN', 'POLICY', 'UNTIL', 'MAILS', 'PASSED', 'QUARANTINED', 'REJECTED'],
    rows: reports.map(({ reporter, domain, policy, endsAt, totals }) => [
      reporter,
      domain,
      policy,
      { time: endsAt },
      totals.messages,
      totals.passed,
      totals.quarantined,
      totals.rejected,
    ]),
    empty: '',
    kind: 'dmarc',
  };
  const sources: OutputBlock = {
    head: ['FAILED DMARC FROM', 'AS', 'SEEN BY', 'MAILS', 'WAS'],
    rows: failing.map(({ ip, headerFrom, messages, disposition, report }): Cell[] => [
      ip,
      headerFrom,
      report.reporter,
      messages,
      disposition === 'none' ? 'taken' : disposition,
    ]),
    empty: '',
    kind: 'dmarc-failed',
  };
  return failing.length === 0 ? [table] : [table, sources];
}

function tlsBlocks(reports: TlsReport[]): OutputBlock[] {
  if (reports.length === 0) return [];
  const table: OutputBlock = {
    head: ['TLS REPORT OF', 'DOMAIN', 'POLICY', 'UNTIL', 'SESSIONS', 'FAILED'],
    rows: reports.map(({ reporter, domain, policy, endsAt, totals }) => [
      reporter,
      domain,
      policy,
      { time: endsAt },
      totals.sessions,
      totals.failed,
    ]),
    empty: '',
    kind: 'tls',
  };
  const failures = reports.flatMap(({ reporter, failures: list }) =>
    list.map(({ type, host, sessions, reason }): Cell[] => [type, host, reporter, sessions, reason]),
  );
  if (failures.length === 0) return [table];
  const head = ['TLS FAILED BY', 'HOST', 'SEEN BY', 'SESSIONS', 'REASON'];
  return [table, { head, rows: failures, empty: '', kind: 'tls-failed' }];
}

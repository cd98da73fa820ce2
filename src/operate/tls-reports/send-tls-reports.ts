/**
 * Sends the TLS reports (RFC 8460) that are due, by mail and by https, to the domains that ask for them. A report by mail is an
 * email of the organization that has the sender's domain. Of several nodes, the first one that takes a report sends it; if
 * nobody accepts the report, it is tried again every hour for a day.
 */

import { createHash } from 'node:crypto';
import { dayMs, reportTime } from '#mail/queue/rows/tls-sessions.ts';
import { forgetReports, giveReportBack, takeReport } from '#operate/tls-reports/rows/tls-report-limits.ts';
import {
  type DueReport,
  dueTlsReports,
  forgetTlsResults,
  type TlsResultRow,
  takeTlsReport,
} from '#operate/tls-reports/rows/tls-results.ts';
import { type Resolve, recordsOf } from '#platform/base/net/resolve.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Mailbox } from '#platform/values/glossary.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { countedReport, mayReport } from './may-report.ts';
import { type ReportAddress, reportAddresses } from './report-addresses.ts';
import { reportDocument, reportMail, type TlsReportDocument } from './report-document.ts';

/** A report as an email of the organization `orgId`. */
interface ReportEmail {
  orgId: string;
  to: string;
  subject: string;
  raw: Buffer;
  idempotency: { key: string; requestHash: string };
}

export interface TlsReportParts {
  db: Db;
  now(): number;
  resolve: Resolve;
  /** 443: strangers' records must not make us post to other services. */
  httpsPort: number;
  sender: Mailbox;
  /** The sender as in a From field. */
  from: string;
  /** The organization that has the domain, verified; null if there is none. */
  findSenderOrg(domain: string): Promise<string | null>;
  accept(email: ReportEmail): Promise<unknown>;
  post(request: { url: string; headers: Record<string, string>; body: string }): Promise<{ status: number }>;
  onError(what: string, error: unknown): void;
}

const maxAtOnce = 10;
const retryDelayMs = 3_600_000;

/** A maintenance job: returns how many reports it found. */
export function sendTlsReports(parts: TlsReportParts): () => Promise<number> {
  return async () => {
    await forgetReports(parts.db, parts.now());
    const due = await dueTlsReports(parts.db, parts.now(), maxAtOnce);
    await Promise.all(due.map((report) => sendOne(parts, report)));
    return due.length;
  };
}

async function sendOne(parts: TlsReportParts, report: DueReport): Promise<void> {
  const { db, resolve } = parts;
  const now = parts.now();
  const rows = await takeTlsReport(db, report, now, now + retryDelayMs);
  if (rows === null) return;
  const isLast = now >= reportTime(report.day, report.domain) + dayMs;
  const found = await txtOf(resolve, `_smtp._tls.${report.domain}`);
  const addresses = found === null ? null : reportAddresses(found, parts.httpsPort);
  const isOver = addresses !== null && (await sendTo(parts, addresses, report, rows));
  if (isOver || isLast) await forgetTlsResults(db, report);
}

/** Null: DNS gave no answer. */
async function txtOf(resolve: Resolve, name: string): Promise<string[] | null> {
  try {
    const records = await recordsOf<string | string[]>(name, 'TXT', resolve);
    return records.map((record) => [record].flat().join(''));
  } catch {
    return null;
  }
}

type Sending = 'sent' | 'refused' | 'failed' | 'not yet';

/** True if it is done: one of the addresses took the report, or none may have it. Each gets it once. */
async function sendTo(
  parts: TlsReportParts,
  addresses: ReportAddress[],
  report: DueReport,
  rows: TlsResultRow[],
): Promise<boolean> {
  const document = reportDocument(report, rows, parts.sender);
  const results = await Promise.all(addresses.map((one) => sendToOne(parts, one, report, document)));
  if (results.includes('not yet')) return false;
  return results.includes('sent') || !results.includes('failed');
}

async function sendToOne(
  parts: TlsReportParts,
  address: ReportAddress,
  report: DueReport,
  document: TlsReportDocument,
): Promise<Sending> {
  const { db, now, onError } = parts;
  if ((await mayReport(db, document.domain, address, now())) === 'not yet') return 'not yet';
  const counted = countedReport(report, address);
  if (!(await takeReport(db, counted))) return 'refused';
  try {
    if (address.kind === 'https') await postTo(parts, address.url, document);
    else await mailTo(parts, address.address, document);
    return 'sent';
  } catch (error) {
    await giveReportBack(db, counted);
    const where = address.kind === 'https' ? address.url : address.address;
    onError(`the TLS report for ${document.domain} could not be sent to ${where}`, error);
    return 'failed';
  }
}

/** RFC 8460 section 5.4. */
async function postTo({ post }: TlsReportParts, url: string, { json }: TlsReportDocument): Promise<void> {
  const { status } = await post({ url, headers: { 'content-type': 'application/tlsrpt+json' }, body: json });
  if (status < 200 || status > 299) throw new Error(`it answered HTTP ${status}`);
}

async function mailTo(parts: TlsReportParts, to: string, document: TlsReportDocument): Promise<void> {
  const { sender, from } = parts;
  const orgId = await parts.findSenderOrg(sender.domain);
  if (orgId === null) {
    throw new Error(`no organization has the domain ${sender.domain} of POSTERN_TLS_REPORTS, verified`);
  }
  const requestHash = createHash('sha256').update(document.json).digest('hex');
  try {
    await parts.accept({
      orgId,
      to,
      subject: `Report Domain: ${document.domain} Submitter: ${sender.domain} Report-ID: <${document.id}>`,
      raw: reportMail(document, sender, from, to),
      // A second try after a crash sends nothing more.
      idempotency: { key: `TLS report ${document.id} ${to}`.slice(0, 255), requestHash },
    });
  } catch (error) {
    if (error instanceof Refusal && error.code === 'ALL_RECIPIENTS_SUPPRESSED') return;
    throw error;
  }
}

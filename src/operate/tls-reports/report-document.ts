/** A TLS report as RFC 8460 section 4 wants it: its JSON, and the mail that carries it (section 5.3). */
import { gzipSync } from 'node:zlib';
import { dayMs } from '#mail/queue/rows/tls-sessions.ts';
import type { DueReport, TlsResultRow } from '#operate/tls-reports/rows/tls-results.ts';
import { iso } from '#platform/base/clock.ts';
import type { Mailbox } from '#platform/values/glossary.ts';

export interface TlsReportDocument {
  id: string;
  domain: string;
  beginsAt: number;
  endsAt: number;
  json: string;
}

/** The id is the same at each try, so that a receiver recognises a report that comes twice. */
export function reportDocument(
  { day, domain }: DueReport,
  rows: TlsResultRow[],
  sender: Mailbox,
): TlsReportDocument {
  const beginsAt = day * dayMs;
  const endsAt = beginsAt + dayMs - 1000;
  const id = `${iso(beginsAt).slice(0, 10)}.${domain}@${sender.domain}`;
  const kinds = [...new Set(rows.map(({ policy }) => policy))];
  const report = {
    'organization-name': sender.name || sender.domain,
    'date-range': { 'start-datetime': seconds(beginsAt), 'end-datetime': seconds(endsAt) },
    'contact-info': sender.address,
    'report-id': id,
    policies: kinds.map((kind) => policyOf(domain, kind, rows)),
  };
  return { id, domain, beginsAt, endsAt, json: JSON.stringify(report) };
}

const seconds = (at: number) => `${iso(at).slice(0, 19)}Z`;

function policyOf(domain: string, kind: TlsResultRow['policy'], all: TlsResultRow[]) {
  const rows = all.filter(({ policy }) => policy === kind);
  const failed = rows.filter(({ failure }) => failure !== '');
  const lines = rows.map(({ policyText }) => policyText).find((text) => text.length > 0) ?? [];
  const patterns = lines.flatMap((line) => /^mx: (.*)$/.exec(line)?.[1] ?? []);
  const sum = (some: TlsResultRow[]) => some.reduce((total, { sessions }) => total + sessions, 0);
  return {
    policy: {
      'policy-type': kind,
      ...(lines.length > 0 && { 'policy-string': lines }),
      'policy-domain': domain,
      ...(patterns.length > 0 && { 'mx-host': patterns }),
    },
    summary: {
      'total-successful-session-count': sum(rows) - sum(failed),
      'total-failure-session-count': sum(failed),
    },
    'failure-details': failed.map((row) => ({
      'result-type': row.failure,
      ...(row.source !== null && { 'sending-mta-ip': row.source }),
      'receiving-mx-hostname': row.host,
      ...(row.address !== null && { 'receiving-ip': row.address }),
      'failed-session-count': row.sessions,
      ...(row.reason !== null && { 'failure-reason-code': row.reason }),
    })),
  };
}

/** `from`: the From field. The composer adds Date, Message-ID and the signature. */
export function reportMail(report: TlsReportDocument, sender: Mailbox, from: string, to: string): Buffer {
  const { id, domain, beginsAt, endsAt, json } = report;
  const [begin, end] = [beginsAt, endsAt].map((at) => Math.floor(at / 1000));
  const file = `${sender.domain}!${domain}!${begin}!${end}.json.gz`;
  const boundary = `=_tls-report-${begin}`;
  const day = iso(beginsAt).slice(0, 10);
  const lines = [
    `From: ${from}`,
    `To: ${to}`,
    `Subject: Report Domain: ${domain} Submitter: ${sender.domain}`,
    ` Report-ID: <${id}>`,
    `TLS-Report-Domain: ${domain}`,
    `TLS-Report-Submitter: ${sender.domain}`,
    // RFC 8460 section 5.3: a report must arrive although TLS fails.
    'TLS-Required: No',
    'Auto-Submitted: auto-generated',
    'MIME-Version: 1.0',
    `Content-Type: multipart/report; report-type="tlsrpt"; boundary="${boundary}"`,
    '',
    `--${boundary}`,
    'Content-Type: text/plain; charset=us-ascii',
    '',
    `This is a report of TLS sessions with the mail hosts of ${domain}`,
    `on ${day} (UTC), as in RFC 8460.`,
    '',
    `--${boundary}`,
    'Content-Type: application/tlsrpt+gzip',
    'Content-Transfer-Encoding: base64',
    'Content-Disposition: attachment;',
    ` filename="${file}"`,
    '',
    ...(gzipSync(json)
      .toString('base64')
      .match(/.{1,76}/g) ?? []),
    '',
    `--${boundary}--`,
    '',
  ];
  return Buffer.from(lines.join('\r\n'));
}

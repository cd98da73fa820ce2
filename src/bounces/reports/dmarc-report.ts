/**
 * DMARC aggregate reports (RFC 7489 section 7.2 and appendix C; RFC 9990 keeps their shape): how a receiver saw the mail
 * that says it is from a domain. Reporters leave out what they please, so all but the domain and the counts may lack.
 */
import { XMLParser } from 'fast-xml-parser';
import { toDomain } from '../../mail/address.ts';
import { hasMoreThan } from './unpack.ts';

export interface DmarcReport {
  kind: 'dmarc';
  domain: string;
  /** Who reports, in their words. */
  reporter: string;
  reportId: string;
  beginsAt: number;
  endsAt: number;
  policy: string | null;
  totals: { messages: number; passed: number; quarantined: number; rejected: number };
  /** The busiest first; of a very long report only these. */
  sources: DmarcSource[];
}

/** What one address sent under one name. Passed: DKIM or SPF agreed with the domain. */
interface DmarcSource {
  ip: string;
  messages: number;
  dkim: boolean;
  spf: boolean;
  disposition: string;
  headerFrom: string;
}

const maxSources = 100;
/** Opening and closing ones: those of ten thousand records. A report of more is kept as a letter. */
const maxTags = 400_000;
const longestWord = 255;

/** Entities are left as they are: what expands can explode. */
const parser = new XMLParser({
  ignoreAttributes: true,
  removeNSPrefix: true,
  processEntities: false,
  parseTagValue: false,
  isArray: (name) => name === 'record',
});

/** Null: not such a report. */
export function readDmarc(xml: string): DmarcReport | null {
  if (hasMoreThan(maxTags, '<', xml)) return null;
  try {
    return reportFrom(parser.parse(xml)?.feedback);
  } catch {
    return null;
  }
}

// biome-ignore lint/suspicious/noExplicitAny: an XML document as a stranger wrote it
type Any = any;

function reportFrom(feedback: Any): DmarcReport | null {
  const { report_metadata: about, policy_published: published } = feedback ?? {};
  const domain = toDomain(word(published?.domain));
  const records = Array.isArray(feedback?.record) ? feedback.record.map(sourceFrom) : [];
  if (domain === null || !about) return null;
  const sum = (counts: (source: DmarcSource) => boolean) =>
    records.filter(counts).reduce((all: number, { messages }: DmarcSource) => all + messages, 0);
  return {
    kind: 'dmarc',
    domain,
    reporter: word(about.org_name) || word(about.email) || 'unknown',
    reportId: word(about.report_id),
    beginsAt: seconds(about.date_range?.begin),
    endsAt: seconds(about.date_range?.end),
    policy: word(published.p) || null,
    totals: {
      messages: sum(() => true),
      passed: sum(({ dkim, spf }) => dkim || spf),
      quarantined: sum(({ disposition }) => disposition === 'quarantine'),
      rejected: sum(({ disposition }) => disposition === 'reject'),
    },
    sources: records.sort((a: DmarcSource, b: DmarcSource) => b.messages - a.messages).slice(0, maxSources),
  };
}

function sourceFrom({ row, identifiers }: Any): DmarcSource {
  const evaluated = row?.policy_evaluated;
  return {
    ip: word(row?.source_ip),
    messages: count(row?.count),
    dkim: word(evaluated?.dkim).toLowerCase() === 'pass',
    spf: word(evaluated?.spf).toLowerCase() === 'pass',
    disposition: word(evaluated?.disposition).toLowerCase(),
    headerFrom: word(identifiers?.header_from).toLowerCase(),
  };
}

/** A text of one line, whatever was there; the first where there are several. */
function word(value: Any): string {
  const one = Array.isArray(value) ? value[0] : value;
  return typeof one === 'string'
    ? one
        .replace(/[\s\p{Cc}]+/gu, ' ')
        .trim()
        .slice(0, longestWord)
    : '';
}

/** Beyond what a day's mail can be, nothing is believed. */
const max = 1e12;

function count(value: Any): number {
  const number = Number(word(value));
  return Number.isInteger(number) && number >= 0 && number <= max ? number : 0;
}

function seconds(value: Any): number {
  return count(value) * 1000;
}

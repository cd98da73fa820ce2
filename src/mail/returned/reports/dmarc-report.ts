/**
 * Parses DMARC aggregate reports (RFC 7489 section 7.2 and appendix C; RFC 9990 keeps the format): a receiver's statistics
 * about mail that claims to be from a domain. Many reporters leave fields out; only the domain is required.
 */
import { XMLParser } from 'fast-xml-parser';
import type { DmarcReport, DmarcSource } from '#mail/returned/aggregate-report.ts';
import { toDomain } from '#platform/values/address.ts';
import { hasMoreThan, oneLine } from './unpack.ts';

const maxSources = 100;
/** Opening and closing tags, enough for ten thousand records. A larger report is kept as a letter. */
const maxTags = 400_000;

/** Entities are not expanded, because expansion can use unlimited memory. */
const parser = new XMLParser({
  ignoreAttributes: true,
  removeNSPrefix: true,
  transformTagName: (name) => name.toLowerCase(),
  processEntities: false,
  parseTagValue: false,
  isArray: (name) => name === 'record',
});

/** The report, or the reason why the text is none. */
export function readDmarc(xml: string): DmarcReport | string {
  if (hasMoreThan(maxTags, '<', xml)) return `the XML has more than ${maxTags} tags`;
  try {
    // The parser looks through a run of spaces once for each of them. No value has more than one line.
    const feedback = feedbackIn(parser.parse(xml.trim().replace(/\s+/g, ' ')), maxLevels);
    return feedback ? reportFrom(feedback) : 'the XML has no element "feedback"';
  } catch (error) {
    return `the XML cannot be parsed: ${(error as Error).message}`;
  }
}

/** Some reporters wrap it in elements of their own. */
const maxLevels = 4;

function feedbackIn(value: Any, levels: number): Any {
  if (typeof value !== 'object' || value === null || levels === 0) return null;
  if (value.feedback) return [value.feedback].flat()[0];
  for (const inner of Object.values(value).slice(0, 20)) {
    const found = feedbackIn(inner, levels - 1);
    if (found) return found;
  }
  return null;
}

// biome-ignore lint/suspicious/noExplicitAny: an XML document from outside, of any shape
type Any = any;

function reportFrom(feedback: Any): DmarcReport | string {
  const { report_metadata: about, policy_published: published } = feedback;
  const domain = toDomain(word(published?.domain).toLowerCase().replace(/\.$/, ''));
  const records = Array.isArray(feedback.record) ? feedback.record.map(sourceFrom) : [];
  if (!about) return 'the element "report_metadata" is missing';
  if (domain === null) return 'the element "policy_published" has no valid "domain"';
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

/** The value as one line of text; the first value if there are several; '' if it is not text. */
function word(value: Any): string {
  const one = Array.isArray(value) ? value[0] : value;
  return typeof one === 'string' ? oneLine(one) : '';
}

/** Larger counts are impossible for a day's mail and are ignored. */
const maxCount = 1e12;

function count(value: Any): number {
  const number = Number(word(value));
  return Number.isInteger(number) && number >= 0 && number <= maxCount ? number : 0;
}

function seconds(value: Any): number {
  return count(value) * 1000;
}

/**
 * The findings of the doctor: on a terminal grouped by subject, a line for each check, with advice and DNS records below
 * it. A record's value is never cut or wrapped, because it is copied.
 */
import { styleText } from 'node:util';
import type { ZoneRecord } from '#accounts/zone-text.ts';
import { counted, type Finding, type FindingStatus } from '#operate/doctor/finding.ts';
import { dim, type OutputBlock, sanitize } from './output.ts';
import { wrap } from './width.ts';

/** In the order of the summary. */
const marks = {
  failure: { sign: '✗', colour: 'red' },
  warning: { sign: '!', colour: 'yellow' },
  ok: { sign: '✓', colour: 'green' },
  skipped: { sign: '-', colour: 'gray' },
} as const;

const verdicts = Object.keys(marks) as FindingStatus[];

export function doctorDocument(findings: Finding[]) {
  const counts = countsOf(findings);
  return { ok: counts.failure === 0, counts, findings };
}

export function doctorBlocks(findings: Finding[], columns = 80): OutputBlock[] {
  const { lines, rows } = findingsBlock(findings, columns);
  return [{ lines: [...lines, summary(findings)], rows }];
}

/** Grouped by subject. */
export function findingsBlock(findings: Finding[], columns: number) {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = [...Map.groupBy(findings, ({ subject }) => subject)].flatMap(([subject, all]) => [
    styleText('bold', sanitize(subject)),
    ...all.flatMap((finding) => findingLines(finding, width, columns)),
    '',
  ]);
  return { lines, rows: findings.map(rowOf) };
}

export function rowOf({ verdict, subject, check, found, advice, records }: Finding) {
  return [verdict, subject, check, found, advice, records.map(inLine).join(' | ') || null];
}

function inLine({ type, name, value }: ZoneRecord): string {
  return `${type} ${name} ${value}`;
}

const arrow = '→ ';
const verdictWidth = Math.max(...verdicts.map((verdict) => verdict.length));
const minTextWidth = 30;

export function findingLines(
  finding: Omit<Finding, 'subject'>,
  checkWidth: number,
  columns: number,
): string[] {
  const { verdict, check, found, advice, records } = finding;
  const { sign, colour } = marks[verdict];
  const mark = `${sign} ${verdict.padEnd(verdictWidth)}`;
  const indent = ' '.repeat(`  ${mark}  `.length + checkWidth + 2);
  const wrapped = (text: string, width: number) =>
    wrap(sanitize(text).split(' '), Math.max(width, minTextWidth));
  const [first, ...more] = wrapped(found, columns - indent.length);
  const todo = advice === null ? [] : wrapped(advice, columns - indent.length - arrow.length);
  return [
    `  ${styleText(colour, mark)}  ${check.padEnd(checkWidth)}  ${first}`,
    ...more.map((line) => `${indent}${line}`),
    ...todo.map((line, at) => `${indent}${at === 0 ? arrow : '  '}${line}`),
    ...records.flatMap(({ type, name, value }) => [
      `${indent}${styleText('bold', `${type}  ${name}`)}`,
      `${indent}${sanitize(value)}`,
    ]),
  ];
}

function summary(findings: Finding[]): string {
  const counts = countsOf(findings);
  const parts = verdicts.filter((each) => counts[each] > 0).map((each) => counted(counts[each], each));
  const title = counts.failure > 0 ? 'Not ready to send' : 'Ready to send';
  return `${styleText('bold', title)} ${dim(`(${parts.join(', ')})`)}`;
}

function countsOf(findings: Finding[]): Record<FindingStatus, number> {
  const counts = { failure: 0, warning: 0, ok: 0, skipped: 0 };
  for (const { verdict } of findings) counts[verdict] += 1;
  return counts;
}

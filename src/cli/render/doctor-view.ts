/**
 * How the command line shows what the doctor found: on a terminal under each subject, a line for each check, with
 * what to do and what to publish below it. A record's value is never cut or wrapped: it is copied.
 */
import { styleText } from 'node:util';
import type { Finding, FindingStatus, PasteRecord } from '../../operate/doctor/finding.ts';
import { type Block, clean, dim } from './output.ts';

const marks = {
  ok: { sign: '✓', colour: 'green' },
  warning: { sign: '!', colour: 'yellow' },
  failure: { sign: '✗', colour: 'red' },
  skipped: { sign: '-', colour: 'gray' },
} as const;

const verdicts: FindingStatus[] = ['failure', 'warning', 'ok', 'skipped'];

export function doctorDocument(findings: Finding[]) {
  return { ok: countOf(findings, 'failure') === 0, counts: counts(findings), findings };
}

export function doctorBlocks(findings: Finding[], columns = 80): Block[] {
  const subjects = [...new Set(findings.map(({ subject }) => subject))];
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = subjects.flatMap((subject) => [
    styleText('bold', clean(subject)),
    ...findings.filter((one) => one.subject === subject).flatMap((one) => findingLines(one, width, columns)),
    '',
  ]);
  return [{ lines: [...lines, summary(findings)], rows: findings.map(rowOf) }];
}

function rowOf({ verdict, subject, check, found, advice, records }: Finding) {
  return [verdict, subject, check, found, advice, records.map(inLine).join(' | ') || null];
}

function inLine({ type, name, value }: PasteRecord): string {
  return `${type} ${name} ${value}`;
}

const arrow = '→ ';
const longestVerdict = Math.max(...verdicts.map((verdict) => verdict.length));

function findingLines(
  { verdict, check, found, advice, records }: Finding,
  width: number,
  columns: number,
): string[] {
  const { sign, colour } = marks[verdict];
  const head = `  ${sign} ${verdict.padEnd(longestVerdict)}  ${check.padEnd(width)}  `;
  const indent = ' '.repeat(head.length);
  const [first, ...more] = wrapped(clean(found), columns - head.length);
  const todo = advice === null ? [] : wrapped(clean(advice), columns - head.length - arrow.length);
  return [
    `  ${styleText(colour, `${sign} ${verdict.padEnd(longestVerdict)}`)}  ${check.padEnd(width)}  ${first}`,
    ...more.map((line) => `${indent}${line}`),
    ...todo.map((line, at) => `${indent}${at === 0 ? arrow : '  '}${line}`),
    ...records.flatMap(({ type, name, value }) => [
      `${indent}${styleText('bold', `${type}  ${name}`)}`,
      `${indent}${clean(value)}`,
    ]),
  ];
}

const minRoom = 30;

/** At spaces; a word that is longer than a line stays whole. */
function wrapped(text: string, room: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= Math.max(room, minRoom))
      lines.push(`${lines.pop()} ${word}`);
    else lines.push(word);
  }
  return lines;
}

function summary(findings: Finding[]): string {
  const said = verdicts
    .filter((verdict) => countOf(findings, verdict) > 0)
    .map((verdict) => {
      const count = countOf(findings, verdict);
      const isCounted = count !== 1 && (verdict === 'failure' || verdict === 'warning');
      return `${count} ${verdict}${isCounted ? 's' : ''}`;
    });
  const failed = countOf(findings, 'failure') > 0;
  return `${styleText('bold', failed ? 'Not ready to send' : 'Ready to send')} ${dim(`(${said.join(', ')})`)}`;
}

function counts(findings: Finding[]): Record<FindingStatus, number> {
  return Object.fromEntries(verdicts.map((verdict) => [verdict, countOf(findings, verdict)])) as Record<
    FindingStatus,
    number
  >;
}

function countOf(findings: Finding[], verdict: FindingStatus): number {
  return findings.filter((finding) => finding.verdict === verdict).length;
}

/**
 * `node scripts/bounce-samples.ts DIR`: reads a collection of returned mail with our reader and prints how much of it is right,
 * by source. DIR has one folder per source, which has one mail per file.
 *
 *   --wrong   also list each mail that is not right
 *   --json    print the rows as JSON
 *
 * A folder's file kinds.txt says what its mails are, one a line: the file's name, a space, and one of
 *
 *   hard        the address or its domain does not exist, or is closed
 *   soft        a failure of any other kind, or a delay
 *   failed      a bounce, hard or soft
 *   complaint, automatic, letter    as in mail/returned/parse-result.ts; `arrived` counts as automatic
 *
 * The envelope sender is taken from Return-Path, where Sendmail writes MAILER-DAEMON for the empty one. A mail without a line
 * there counts as `failed`. A mail whose bytes were read before, in any folder, is skipped.
 */

import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { tableOf } from '#lab/load/figures.ts';
import { readMail } from '#mail/returned/parse/parse-bounce.ts';
import type { ParseResult } from '#mail/returned/parse-result.ts';

const kinds = ['hard', 'soft', 'failed', 'complaint', 'automatic', 'letter'] as const;
type Kind = (typeof kinds)[number];

interface Row {
  source: string;
  mails: number;
  /** Read as what they are, regardless of hard or soft. */
  recognised: number;
  /** Mails known to be hard or soft. */
  known: number;
  right: number;
  deadCalledSoft: number;
  livingCalledHard: number;
}

const figures = ['mails', 'recognised', 'known', 'right', 'deadCalledSoft', 'livingCalledHard'] as const;

function rowOf(source: string): Row {
  return { source, mails: 0, recognised: 0, known: 0, right: 0, deadCalledSoft: 0, livingCalledHard: 0 };
}

function kindRead(reading: ParseResult): Kind {
  switch (reading.kind) {
    case 'failed':
      return reading.bounce.type;
    case 'delayed':
      return 'soft';
    case 'arrived':
    case 'report':
      return 'automatic';
    default:
      return reading.kind;
  }
}

const isBounce = (kind: Kind) => kind === 'hard' || kind === 'soft' || kind === 'failed';

function count(row: Row, expected: Kind, read: Kind): void {
  row.mails += 1;
  row.recognised += Number(isBounce(expected) ? isBounce(read) : expected === read);
  if (expected !== 'hard' && expected !== 'soft') return;
  row.known += 1;
  row.right += Number(read === expected);
  row.deadCalledSoft += Number(expected === 'hard' && read === 'soft');
  row.livingCalledHard += Number(expected === 'soft' && read === 'hard');
}

async function kindsIn(folder: string): Promise<Map<string, Kind>> {
  const text = await readFile(join(folder, 'kinds.txt'), 'utf8').catch(() => '');
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return new Map(
    lines.map((line) => {
      const [, name, word] = /^(.+)\s(\S+)$/.exec(line.trim()) ?? [];
      const kind = kinds.find((one) => one === word);
      if (!name || !kind) throw new Error(`${folder}/kinds.txt: "${line}" is not a file and a kind`);
      return [name.trim(), kind];
    }),
  );
}

const seen = new Set<string>();

async function judge(directory: string, source: string): Promise<{ row: Row; wrong: string[] }> {
  const folder = join(directory, source);
  const expectedKinds = await kindsIn(folder);
  const row = rowOf(source);
  const wrong: string[] = [];
  for (const name of (await readdir(folder)).sort()) {
    if (name === 'kinds.txt') continue;
    const bytes = await readFile(join(folder, name));
    const digest = createHash('sha256').update(bytes).digest('hex');
    if (seen.has(digest)) continue;
    seen.add(digest);
    const expected = expectedKinds.get(name) ?? 'failed';
    const hasNullSender = /^Return-Path:[ \t]*<(?:mailer-daemon(?:@[^>]*)?)?>/im.test(
      bytes.subarray(0, 64 * 1024).toString('latin1'),
    );
    const reading = await readMail(bytes, 'return-path', hasNullSender);
    const read = kindRead(reading);
    count(row, expected, read);
    if (read !== expected && !(expected === 'failed' && isBounce(read)))
      wrong.push(`${source}/${name}: ${expected}, read as ${describe(reading)}`);
  }
  return { row, wrong };
}

function describe(reading: ParseResult): string {
  if (reading.kind !== 'failed')
    return 'format' in reading ? `${reading.kind} (${reading.format})` : reading.kind;
  const { format, rule, bounce } = reading;
  return `${bounce.type} ${bounce.category} (${format}, ${rule}): ${bounce.diagnostic.slice(0, 160)}`;
}

function percent(part: number, whole: number): string {
  return whole === 0 ? '-' : `${((100 * part) / whole).toFixed(1)} %`;
}

function print(rows: Row[]): void {
  const head = ['source', 'mails', 'recognised', 'of known kind', 'hard or soft right', 'dead called soft'];
  const shown = rows.map(({ source, mails, recognised, known, right, deadCalledSoft, livingCalledHard }) => {
    const rates = [percent(recognised, mails), known, percent(right, known)];
    return [source, mails, ...rates, deadCalledSoft, livingCalledHard];
  });
  console.log(tableOf([...head, 'living called hard'], shown));
}

const { values, positionals } = parseArgs({
  options: { wrong: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const [directory] = positionals;
if (!directory) {
  console.error('Usage: node scripts/bounce-samples.ts DIR [--wrong] [--json]');
  process.exit(2);
}
const folders = (await readdir(directory, { withFileTypes: true })).filter((entry) => entry.isDirectory());
const results = [];
for (const { name } of folders.sort((a, b) => a.name.localeCompare(b.name)))
  results.push(await judge(directory, name));
const rows = results.map(({ row }) => row);
const total = rowOf('all');
for (const row of rows) for (const figure of figures) total[figure] += row[figure];
if (values.json) console.log(JSON.stringify([...rows, total], null, 2));
else print([...rows, total]);
if (values.wrong) for (const line of results.flatMap(({ wrong }) => wrong)) console.log(line);

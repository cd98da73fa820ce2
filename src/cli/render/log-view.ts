/**
 * A line of the mail log for somebody's eyes: time, verb and email in columns, then what happened, broken between words
 * and indented where the terminal is too narrow. Strangers' words come out harmless.
 */
import { styleText } from 'node:util';
import { sanitize } from '../../base/sanitize.ts';
import { endOf, type LogLine } from '../maillog/log-filter.ts';
import { coloured, dim } from './cells.ts';
import { local, span } from './times.ts';
import { widthOf } from './width.ts';

interface Word {
  text: string;
  style: (text: string) => string;
}

const plain = (text: string) => text;
const bold = (text: string) => styleText('bold', text);

const timeWidth = '12:03:04.120'.length;
const verbWidth = 'attempted'.length;
const indent = timeWidth + verbWidth + 4;
/** With less than this there is nothing to be gained by breaking. */
const minText = 30;
/** On a narrower terminal an email is named by the end of its id. */
const roomForId = 110;

/** The day of a line, where it is another than that of the line before. */
export function dayOf({ time }: LogLine): string {
  return local(Date.parse(time)).split(' ')[0]!;
}

export function readable(line: LogLine, columns: number): string {
  const at = Date.parse(line.time);
  const clock = `${local(at).split(' ')[1]}.${String(at % 1000).padStart(3, '0')}`;
  const verb = coloured(sanitize(line.event)) + ' '.repeat(Math.max(verbWidth - line.event.length, 0));
  return `${dim(clock)}  ${verb}  ${broken(wordsOf(line, columns), columns)}`;
}

function wordsOf(line: LogLine, columns: number): Word[] {
  const id = typeof line.emailId === 'string' ? line.emailId : '';
  const said = typeof line.recipient === 'string' ? parts(line) : [sentence(line), ''];
  return [
    ...words(columns < roomForId ? endOf(id) : id, dim),
    ...words(typeof line.recipient === 'string' ? line.recipient : '', bold),
    ...words(said[0]!, plain),
    ...words(said[1]!, dim),
  ];
}

/** What the line says, without its verb. */
function sentence({ msg, event }: LogLine): string {
  return msg.startsWith(event) ? msg.slice(event.length) : msg;
}

/** What was said, and what else is known. */
function parts(line: LogLine): [said: string, known: string] {
  if (line.event === 'accepted') {
    return [
      `from ${line.from ?? '?'}`,
      [line.requestId && `request\u00a0${line.requestId}`, ...tags(line)].filter(Boolean).join(', '),
    ];
  }
  const host = line.host ? `${line.host}${line.address ? ` [${line.address}]` : ''}: ` : '';
  const known = [
    line.category,
    typeof line.ms === 'number' ? span(line.ms).replaceAll(' ', '\u00a0') : null,
    line.tls,
    typeof line.attempt === 'number' && line.attempt > 1 ? `attempt ${line.attempt}` : null,
    line.nextAttemptAt ? `next\u00a0${local(Date.parse(line.nextAttemptAt)).split(' ')[1]}` : null,
  ];
  const details = known.filter(Boolean).join(', ');
  return [`${host}${line.reply ?? sentence(line)}`, details && `(${details})`];
}

function tags({ tags: given }: LogLine): string[] {
  return Object.entries(given ?? {}).map(([name, value]) => `${name}=${value}`);
}

function words(text: string, style: Word['style']): Word[] {
  const all = text.split(' ').filter((word) => word !== '');
  return all.map((word) => ({ text: sanitize(word), style }));
}

function broken(all: Word[], columns: number): string {
  const width = columns - indent < minText ? Number.POSITIVE_INFINITY : columns - indent;
  const lines: Word[][] = [[]];
  let used = 0;
  for (const word of all) {
    const size = widthOf(word.text);
    if (used > 0 && used + 1 + size > width) {
      lines.push([]);
      used = 0;
    }
    lines.at(-1)!.push(word);
    used += size + (used > 0 ? 1 : 0);
  }
  return lines.map(styled).join(`\n${' '.repeat(indent)}`);
}

function styled(line: Word[]): string {
  return line.map(({ text, style }) => style(text)).join(' ');
}

/**
 * A line of the mail log for a person: time, event and email in columns, then the message, broken between words and
 * indented if the terminal is too narrow.
 */
import { styleText } from 'node:util';
import { endOf, type LogLine } from '#cli/maillog/log-filter.ts';
import { sanitize } from '#platform/base/sanitize.ts';
import { span } from '#platform/base/span.ts';
import { coloured, dim } from './cells.ts';
import { local } from './times.ts';
import { wrap } from './width.ts';

const timeWidth = '12:03:04.120'.length;
const eventWidth = 'attempted'.length;
const indent = timeWidth + eventWidth + 4;
/** If less than this is left for the message, it is not broken. */
const minTextWidth = 30;
/** On a narrower terminal an email is shown by the end of its id. */
const minColumnsForId = 110;

/** The day of a line, which is printed when it changes. */
export function dayOf({ time }: LogLine): string {
  return local(Date.parse(time)).split(' ')[0]!;
}

export function readable(line: LogLine, columns: number): string {
  const at = Date.parse(line.time);
  const clock = `${local(at).split(' ')[1]}.${String(at % 1000).padStart(3, '0')}`;
  const event = coloured(sanitize(line.event)) + ' '.repeat(Math.max(eventWidth - line.event.length, 0));
  const width = columns - indent < minTextWidth ? Number.POSITIVE_INFINITY : columns - indent;
  const text = wrap(wordsOf(line, columns), width).join(`\n${' '.repeat(indent)}`);
  return `${dim(clock)}  ${event}  ${text}`;
}

function wordsOf(line: LogLine, columns: number): string[] {
  const id = typeof line.emailId === 'string' ? line.emailId : '';
  const hasRecipient = typeof line.recipient === 'string';
  const { message, details } = hasRecipient ? partsOf(line) : { message: sentence(line), details: '' };
  return [
    ...words(columns < minColumnsForId ? endOf(id) : id, dim),
    ...words(hasRecipient ? line.recipient! : '', (word) => styleText('bold', word)),
    ...words(message, (word) => word),
    ...words(details, dim),
  ];
}

/** The message without the event that it begins with. */
function sentence({ msg, event }: LogLine): string {
  return msg.startsWith(event) ? msg.slice(event.length) : msg;
}

function partsOf(line: LogLine): { message: string; details: string } {
  if (line.event === 'accepted') {
    const tags = Object.entries(line.tags ?? {}).map(([name, value]) => `${name}=${value}`);
    const names = [
      line.requestId && `request\u00a0${line.requestId}`,
      line.stream && `stream\u00a0${line.stream}`,
      ...tags,
    ];
    const details = names.filter(Boolean).join(', ');
    const before = ` for <${line.recipient}>`;
    const said = sentence(line);
    return { message: said.startsWith(before) ? said.slice(before.length) : said, details };
  }
  if (line.event === 'refused') return { message: sentence(line).replace(/^ <[^>]*>/, ''), details: '' };
  const host = line.host ? `${line.host}${line.address ? ` [${line.address}]` : ''}: ` : '';
  const details = [
    line.category,
    typeof line.ms === 'number' && span(line.ms).replaceAll(' ', '\u00a0'),
    line.tls,
    typeof line.attempt === 'number' && line.attempt > 1 && `attempt ${line.attempt}`,
    line.nextAttemptAt && `next\u00a0${local(Date.parse(line.nextAttemptAt)).split(' ')[1]}`,
  ];
  const known = details.filter(Boolean).join(', ');
  return { message: `${host}${line.reply ?? sentence(line)}`, details: known && `(${known})` };
}

function words(text: string, style: (word: string) => string): string[] {
  const all = text.split(' ').filter((word) => word !== '');
  return all.map((word) => style(sanitize(word)));
}

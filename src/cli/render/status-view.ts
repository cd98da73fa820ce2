/**
 * `postern status` for a terminal, and the head of `top`. Each entry has a line and its next command; its reply and advice are
 * added if all of it then fits the screen. Nothing is wider than the terminal, except for a command, which is copied.
 */
import { styleText } from 'node:util';
import stringWidth from 'string-width';
import { sanitize } from '../../base/sanitize.ts';
import { causes, type Need } from '../../operate/status/need.ts';
import { isWell, type Status, verdictText } from '../../operate/status/read-status.ts';
import { type Block, dim } from './output.ts';
import { relative } from './times.ts';
import { cut, fit, wrap } from './width.ts';

interface Size {
  columns: number;
  rows: number;
}

export function statusBlock(status: Status, size: Size): Block {
  return { lines: statusLines(status, size), rows: statusRows(status) };
}

/** For a pipe: the verdict, then the needs. */
export function statusRows(status: Status) {
  return [
    ['verdict', isWell(status) ? 'well' : 'needs_attention', verdictText(status)],
    ...status.needs.map(({ severity, cause, subject, since, figure, command, reply, advice }) => [
      severity,
      cause,
      subject,
      { time: since },
      figure,
      command,
      reply,
      advice,
    ]),
  ];
}

type LinesOf = (need: Need, width: number) => string[];

function statusLines(status: Status, { columns, rows }: Size): string[] {
  const head = [...verdictLines(status, columns), ''];
  const summary = (need: Need) => needLine(need, status.at, columns);
  const withCommand: LinesOf = (need) => [...indented([styleText('bold', `→ ${sanitize(need.command)}`)])];
  const withReply: LinesOf = (need, width) => [...replyLines(need, width), ...withCommand(need, width)];
  const withAdvice: LinesOf = (need, width) => [
    ...replyLines(need, width),
    ...indented(wrap(sanitize(need.advice).split(' '), width)),
    ...withCommand(need, width),
  ];
  const all = [withAdvice, withReply, withCommand].map((linesOf) => [
    ...head,
    ...status.needs.flatMap((need) => [summary(need), ...linesOf(need, columns - indent.length)]),
    ...moreLines(status),
  ]);
  // One row for the prompt.
  return all.find((lines) => lines.length < rows) ?? all.at(-1)!;
}

function verdictLines(status: Status, columns: number): string[] {
  const colour = isWell(status) ? 'green' : 'red';
  return wrap(verdictText(status).split(' '), columns).map((line) => styleText(['bold', colour], line));
}

const indent = '    ';

function indented(lines: string[]): string[] {
  return lines.map((line) => indent + line);
}

const labelWidth = Math.max(...Object.values(causes).map(({ label }) => label.length));

/** The verdict and a line for each of the first needs; the commands are left to `postern status`. */
export function statusHead(status: Status, columns: number, max = Number.POSITIVE_INFINITY): string[] {
  const shown = status.needs.slice(0, max);
  const [verdict = ''] = verdictLines(status, columns);
  const isCut = shown.length < status.needs.length;
  const hint = isCut ? dim(cut('  all: postern status', Math.max(columns - stringWidth(verdict), 0))) : '';
  return [verdict + hint, ...shown.map((need) => needLine(need, status.at, columns))];
}

/** `! throttled     mx.example.org  since 5 m ago: 12 waiting, 4 a minute, 3 m to drain` */
function needLine({ cause, severity, subject, since, figure }: Need, now: number, columns: number) {
  const [sign, colour] = severity === 'act' ? (['✗', 'red'] as const) : (['!', 'yellow'] as const);
  const left = `${sign} ${fit(causes[cause].label, labelWidth)}`;
  const began = since === null ? '' : `since ${relative(since, now)}: `;
  const right = `  ${sanitize(subject)}  ${began}${sanitize(figure)}`;
  return styleText(colour, cut(left, columns)) + cut(right, columns - left.length);
}

function replyLines({ reply }: Need, width: number): string[] {
  return reply === null ? [] : indented([dim(cut(`"${sanitize(reply)}"`, width))]);
}

function moreLines({ more }: Status): string[] {
  return more === 0 ? [] : [dim(`and ${more} more destinations: postern queue summary`)];
}

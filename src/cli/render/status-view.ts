/**
 * `postern status` for a terminal, and the head of `top`. Each entry has a line and its next command; its reply and advice are
 * added if all of it then fits the screen. Nothing is wider than the terminal, except for a command, which is copied.
 */
import { styleText } from 'node:util';
import stringWidth from 'string-width';
import { causes } from '#operate/condition/causes.ts';
import { type Need, thisServer } from '#operate/status/need.ts';
import { orderText } from '#operate/status/operator-orders.ts';
import { isWell, type Status, statusDocument, verdictText } from '#operate/status/read-status.ts';
import { warmUpText } from '#operate/status/warm-ups.ts';
import { sanitize } from '#platform/base/sanitize.ts';
import { span } from '#platform/base/span.ts';
import type { Cell } from './cells.ts';
import { dim, type OutputBlock } from './output.ts';
import { cut, fit, wrap } from './width.ts';

export interface Size {
  columns: number;
  rows: number;
}

export function statusBlock(status: Status, size: Size): Extract<OutputBlock, { lines: string[] }> {
  return { lines: statusLines(status, size), rows: statusRows(status) };
}

/** The lines for a pipe: the verdict, then the needs, the orders and the new addresses. */
export function statusRows(status: Status): Cell[][] {
  const { verdict, summary } = statusDocument(status);
  return [
    ['verdict', verdict, summary, ...(status.setUp === null ? [] : [status.setUp])],
    ...status.needs.map(({ severity, cause, subject, since, figure, command, reply, advice }) => [
      severity,
      cause,
      subject,
      { time: since, past: true },
      figure,
      command,
      reply ?? null,
      advice,
    ]),
    ...status.orders.map(({ kind, subject, since, count, command, reason }) => [
      'order',
      kind,
      subject,
      { time: since, past: true },
      count,
      command,
      reason,
    ]),
    ...status.warmUps.map(({ address, receivers, day, used, allowance, tomorrow, daysLeft, endsAt }) => [
      'warm-up',
      address,
      receivers,
      day,
      used,
      allowance,
      tomorrow,
      daysLeft,
      { time: endsAt },
    ]),
  ];
}

type LinesOf = (need: Need, width: number) => string[];

function statusLines(status: Status, { columns, rows }: Size): string[] {
  const setUp = status.setUp === null ? [] : indented([commandLine(status.setUp)]);
  const head = [...verdictLines(status, columns), ...setUp, ''];
  const summary = (need: Need) => [needLine(need, status.at, columns)];
  const whole = (need: Need) => needLines(need, status.at, columns);
  const withCommand: LinesOf = (need) => indented([commandLine(need.command)]);
  const withReply: LinesOf = (need, width) => [...replyLines(need, width), ...withCommand(need, width)];
  const withAdvice: LinesOf = (need, width) => [
    ...replyLines(need, width),
    ...indented(wrap(sanitize(need.advice).split(' '), width)),
    ...withCommand(need, width),
  ];
  const short = [withAdvice, withReply, withCommand, () => []].map((linesOf) => ({
    linesOf,
    first: summary,
  }));
  const all = [{ linesOf: withAdvice, first: whole }, ...short].map(({ linesOf, first }) => [
    ...head,
    ...status.needs.flatMap((need) => [...first(need), ...linesOf(need, columns - indent.length)]),
    ...moreLines(status, columns),
    ...orderLines(status, columns),
    ...warmUpLines(status, columns),
  ]);
  // One row for the prompt. Without the commands nothing is left of what a short screen is for.
  return all.find((lines) => lines.length < rows) ?? all[3]!;
}

function commandLine(command: string): string {
  return styleText('bold', `→ ${sanitize(command)}`);
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
  return [
    verdict + hint,
    ...shown.map((need) => needLine(need, status.at, columns)),
    ...warmUpLines(status, columns).slice(2, 2 + max),
  ];
}

/** `! throttled    mx.example.org  for 5 minutes: 12 waiting, 4 a minute, 3 minutes to drain` */
function needLine(need: Need, now: number, columns: number): string {
  const { left, colour, text } = partsOf(need, now);
  return styleText(colour, cut(left, columns)) + cut(`  ${text}`, columns - left.length);
}

const minTextWidth = 30;

/** The same with all of its text, on as many lines as it needs. */
function needLines(need: Need, now: number, columns: number): string[] {
  const { left, colour, text } = partsOf(need, now);
  const width = columns - left.length - 2;
  if (width < minTextWidth) return [needLine(need, now, columns)];
  const [first = '', ...more] = wrap(text.split(' '), width).map((line) => cut(line, width));
  return [
    `${styleText(colour, left)}  ${first}`,
    ...more.map((line) => `${' '.repeat(left.length + 2)}${line}`),
  ];
}

function partsOf({ cause, severity, subject, since, figure }: Need, now: number) {
  const [sign, colour] = severity === 'act' ? (['✗', 'red'] as const) : (['!', 'yellow'] as const);
  const lasts = since === null ? '' : `for ${span(Math.max(now - since, 0))}: `;
  const named = subject === thisServer ? '' : `${sanitize(subject)}  `;
  return {
    left: `${sign} ${fit(causes[cause].label, labelWidth)}`,
    colour,
    text: `${named}${lasts}${sanitize(figure)}`,
  };
}

function replyLines({ reply }: Need, width: number): string[] {
  return reply ? indented([dim(cut(`"${sanitize(reply)}"`, width))]) : [];
}

function moreLines({ more, folded }: Status, columns: number): string[] {
  const names = folded.map(({ subject }) => sanitize(subject)).join(', ');
  return [
    ...(folded.length === 0 ? [] : [dim(cut(`  below it: ${names}`, columns))]),
    ...(more === 0 ? [] : [dim(`and ${more} more destinations: postern queue summary`)]),
  ];
}

function orderLines({ orders, at }: Status, columns: number): string[] {
  if (orders.length === 0) return [];
  return [
    '',
    styleText('bold', 'By your order:'),
    ...orders.flatMap((order) => {
      const { since, count, command } = order;
      const lasts = since === null ? '' : ` for ${span(Math.max(at - since, 0))}`;
      const left = `  ${sanitize(orderText(order))}${lasts}: ${count} ${count === 1 ? 'mail' : 'mails'}`;
      const ends = commandLine(command);
      // The command is copied, so it is never cut.
      const fits = stringWidth(left) + stringWidth(ends) + 2 <= columns;
      return fits ? [`${left}  ${ends}`] : [cut(left, columns), ...indented([ends])];
    }),
  ];
}

function warmUpLines({ warmUps }: Status, columns: number): string[] {
  if (warmUps.length === 0) return [];
  const lines = warmUps.map((one) => cut(`  ${warmUpText(one)}`, columns));
  return ['', styleText('bold', 'New to receivers:'), ...lines];
}

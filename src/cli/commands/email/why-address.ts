/**
 * The answer of `email why ADDRESS` besides the address's newest email: its suppressions, the last sends to it that were
 * refused, and, if there is no email, addresses that are spelled like it. Refused sends are in the mail log alone.
 */

import { suppressionsOf } from '#accounts/rows/suppressions.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { type LogFile, openLog } from '#cli/maillog/log-file.ts';
import { createKeep, readLine } from '#cli/maillog/log-filter.ts';
import { coloured, dim, type OutputBlock, sanitize } from '#cli/render/output.ts';
import { local } from '#cli/render/times.ts';
import { wrap } from '#cli/render/width.ts';
import { iso } from '#platform/base/clock.ts';
import { nearest } from '#platform/base/closest-name.ts';
import { relative } from '#platform/base/span.ts';
import { longDuration } from '#platform/settings/durations.ts';
import { shellWord } from '#platform/settings/shell-word.ts';
import { compareKey, domainOf } from '#platform/values/address.ts';
import { mailLogFile } from '#platform/values/mail-log.ts';

const maxRefusals = 5;
const maxNearest = 3;
/** More edits are another address: one in so many letters, and at most three. */
const lettersPerEdit = 7;
const maxEdits = 3;
/** Bounds the work with a large log. */
const maxCandidates = 50_000;

export interface AddressReport {
  suppressions: Awaited<ReturnType<typeof suppressionsOf>>;
  /** The newest first. */
  refusals: { at: number; reason: string; requestId: string | null }[];
  nearest: string[];
}

/** Null if `text` is not an address. */
export async function reportOn(
  { db, config }: CommandContext,
  text: string,
  hasEmail: boolean,
): Promise<AddressReport | null> {
  const address = text.trim();
  if (domainOf(address) === null) return null;
  const suppressions = await suppressionsOf(await db(), compareKey(address));
  const { refusals, others } = await readMailLog(mailLogFile(config().dataDir), address, !hasEmail);
  const tolerated = Math.min(Math.floor(address.length / lettersPerEdit), maxEdits);
  const near = nearest(compareKey(address), others, compareKey).filter(({ edits }) => edits <= tolerated);
  return { suppressions, refusals, nearest: near.slice(0, maxNearest).map(({ name }) => name) };
}

async function readMailLog(file: string, address: string, wantsOthers: boolean) {
  const log = await openLog(file);
  try {
    return {
      refusals: await refusalsIn(log, address),
      others: wantsOthers ? await recipientsIn(log, compareKey(address)) : [],
    };
  } finally {
    await log.close();
  }
}

async function refusalsIn(log: LogFile, address: string): Promise<AddressReport['refusals']> {
  const isRefusal = createKeep({ to: address, states: ['refused'] });
  const found: string[] = [];
  for await (const lines of log.backward((text) => text.includes('"refused"') && isRefusal(text))) {
    found.push(...lines.reverse());
    if (found.length >= maxRefusals) break;
  }
  return found.slice(0, maxRefusals).map(refusalIn);
}

async function recipientsIn(log: LogFile, key: string): Promise<string[]> {
  const found = new Set<string>();
  for await (const lines of log.backward((text) => text.includes('"recipient"'))) {
    for (const text of lines) found.add(/"recipient":"([^"\\]{3,320})"/.exec(text)?.[1] ?? '');
    if (found.size > maxCandidates) break;
  }
  return [...found].filter((one) => one !== '' && compareKey(one) !== key);
}

function refusalIn(text: string): AddressReport['refusals'][number] {
  const { time, msg, requestId = null } = readLine(text)!;
  return { at: Date.parse(time), reason: msg.replace(/^refused (?:<[^>]*> )?/, ''), requestId };
}

export function isEmpty({ suppressions, refusals }: AddressReport): boolean {
  return suppressions.length === 0 && refusals.length === 0;
}

export function reportDocument({ suppressions, refusals, nearest: near }: AddressReport) {
  return {
    suppressions: suppressions.map(({ organization, reason, createdAt }) => ({
      organization,
      reason,
      since: iso(createdAt),
    })),
    refusals: refusals.map(({ at, ...rest }) => ({ at: iso(at), ...rest })),
    nearest: near,
  };
}

/** `isAlone`: there is no email to the address, so that the report is the whole answer. */
export function reportBlock(
  { config, out, now }: CommandContext,
  address: string,
  { suppressions, refusals, nearest: near }: AddressReport,
  isAlone: boolean,
): OutputBlock {
  const when = (at: number) => `${local(at)} (${relative(at, now())})`;
  const sentences = [
    ...suppressions.map(
      ({ createdAt, reason, organization }) =>
        `${address} is suppressed in ${organization} since ${when(createdAt)}: ${reason}. ` +
        `\`postern suppression remove ${address} --org ${shellWord(organization)}\` takes it off the list.`,
    ),
    ...refusals.map(({ at, reason }) => `A send was refused at ${when(at)}: ${reason}`),
    ...(isAlone && refusals.length === 0 && suppressions.length === 0
      ? [`No send to ${address} was accepted or refused.`]
      : []),
    ...(isAlone && near.length > 0 ? [`There was mail for ${near.join(', ')}.`] : []),
    ...(isAlone ? [`Emails are kept ${kept(config)}.`] : []),
  ];
  const state = suppressions.length > 0 ? 'suppressed' : 'no email';
  return {
    lines: [
      ...(isAlone ? [`${address}  ${coloured(state)}`] : [dim('Also:')]),
      ...sentences.flatMap((sentence) => wrap(sanitize(sentence).split(' '), out.columns)),
    ],
    rows: sentences.map((sentence) => ['address', address, sentence]),
  };
}

function kept(config: CommandContext['config']): string {
  const { keepEmails } = config();
  return keepEmails === null ? 'forever' : `for ${longDuration.print(keepEmails)}`;
}

/**
 * The rules by which the mail of a key, a stream or a tag is held, or warned of: pure functions of counts and replies. The table
 * in docs/auto-pause.md is made from `pauseRules`.
 *
 * Of groups that break a rule the narrowest is held: that with the least mail. The others count without the failures of that one,
 * so that a bad newsletter does not stop the key that sends receipts, too.
 */
import { ruleFor } from '#mail/deliver/reply-rules/classify.ts';
import { type MailGroup, mailGroupKinds } from '#platform/database/tables/mail-group.ts';
import type { Bounce } from '#platform/values/glossary.ts';

/** off: nothing is judged; warn: people are told, and the mail goes on; hold: it is held until somebody releases it. */
export const pauseModes = ['off', 'warn', 'hold'] as const;

export type PauseMode = (typeof pauseModes)[number];

interface PauseRule {
  /** What has happened, for people. */
  label: string;
  /** Of mail: how much of it must have had an outcome, and the share of it. Null: one reply is enough. */
  rate: { min: number; share: number; of: string } | null;
}

export const pauseRules = {
  complaints: {
    label: 'complaints',
    rate: { min: 500, share: 0.003, of: 'delivered' },
  },
  hard_bounces: {
    label: 'hard bounces',
    rate: { min: 200, share: 0.05, of: 'delivered or bounced' },
  },
  spam_trap: { label: 'a reply that names a spam trap', rate: null },
  listed_content: { label: 'a reply that says that the content is on a blocklist', rate: null },
} as const satisfies Record<string, PauseRule>;

export type PauseRuleName = keyof typeof pauseRules;

const rateRules = ['complaints', 'hard_bounces'] as const;

type RateRule = (typeof rateRules)[number];

/** The statistics that the rules read. */
export const judgedCounts = ['delivered', 'bounced', 'hard', 'complained'] as const;

export type JudgedCounts = Record<(typeof judgedCounts)[number], number>;

export interface CountedGroup extends MailGroup, JudgedCounts {
  /** What counted already when it was last released, which is forgiven; of today and of the day before, as the rest. */
  forgiven: JudgedCounts | null;
  /** It is held, was warned of or released within these days: it answers for its own mail, also within wider groups. */
  isKnown: boolean;
  /** Not judged: it is held, or has been warned of and is only warned of. */
  isSettled: boolean;
}

/** A group that breaks a rule, and the figures. */
export interface Breach {
  group: MailGroup;
  rule: PauseRuleName;
  count: number;
  of: number;
}

/**
 * Judges the groups of one organization, and `all` of its mail. Each breach that is found explains its failures in what is judged
 * after it.
 */
export function breachesIn(groups: CountedGroup[], all: JudgedCounts): Breach[] {
  const breaches: Breach[] = [];
  const explained = groups.filter(({ isKnown }) => isKnown);
  const open = new Set(groups.filter(({ isSettled }) => !isSettled));
  for (;;) {
    const found = narrowestOf([...open], explained) ?? worstKeyOf([...open], explained, all);
    if (!found) return breaches;
    breaches.push(found.breach);
    explained.push(found.group);
    open.delete(found.group);
  }
}

interface Found {
  group: CountedGroup;
  breach: Breach;
}

/** It must break the rule by all of its mail, and by what is left without the groups that answer for their own. */
function narrowestOf(open: CountedGroup[], explained: CountedGroup[]): Found | undefined {
  const found = open.flatMap((group) => {
    const own = ownOf(group);
    const left = explained.filter((other) => mayShare(group, other)).reduce<JudgedCounts>(less, own);
    const rule = rateRules.find((one) => isBroken(one, own) && isBroken(one, left));
    return rule ? [{ group, breach: breachOf(group, rule, left) }] : [];
  });
  return found.sort((a, b) => a.breach.of - b.breach.of || rankOf(a.group) - rankOf(b.group))[0];
}

/**
 * Keys with little mail can break the rule together: then, one by one, the key with the most failures of those whose share is as
 * high.
 */
function worstKeyOf(open: CountedGroup[], explained: CountedGroup[], all: JudgedCounts): Found | undefined {
  const left = explained.reduce<JudgedCounts>(less, all);
  const rule = rateRules.find((one) => isBroken(one, all) && isBroken(one, left));
  if (!rule) return undefined;
  return open
    .filter(({ kind }) => kind === 'key')
    .map((group) => ({ group, breach: breachOf(group, rule, ownOf(group)) }))
    .filter(({ breach: { count, of } }) => count > 0 && count >= of * pauseRules[rule].rate.share)
    .sort((a, b) => b.breach.count - a.breach.count)[0];
}

const rankOf = ({ kind }: MailGroup) => mailGroupKinds.indexOf(kind);

const ownOf = (group: CountedGroup) => (group.forgiven === null ? group : less(group, group.forgiven));

const breachOf = ({ kind, name }: MailGroup, rule: RateRule, counts: JudgedCounts): Breach => ({
  group: { kind, name },
  rule,
  ...figuresOf(rule, counts),
});

/** An email has one key and one stream, and may have several tags. */
const mayShare = (group: MailGroup, other: MailGroup) =>
  group.kind === other.kind ? group.kind === 'tag' && group.name !== other.name : true;

function less(counts: JudgedCounts, others: JudgedCounts): JudgedCounts {
  const minus = (name: keyof JudgedCounts) => Math.max(0, counts[name] - others[name]);
  return {
    delivered: minus('delivered'),
    bounced: minus('bounced'),
    hard: minus('hard'),
    complained: minus('complained'),
  };
}

function figuresOf(rule: RateRule, counts: JudgedCounts): { count: number; of: number } {
  const { delivered, bounced, hard, complained } = counts;
  return rule === 'complaints'
    ? { count: complained, of: delivered }
    : { count: hard, of: delivered + bounced };
}

function isBroken(rule: RateRule, counts: JudgedCounts): boolean {
  const { min, share } = pauseRules[rule].rate;
  const { count, of } = figuresOf(rule, counts);
  return of >= min && count >= of * share;
}

/** The rule that one bounce breaks: by the same rules as a reply in a session (mail/deliver/reply-rules/). */
export function ruleBrokenBy({ category, diagnostic }: Bounce): PauseRuleName | null {
  if (category !== 'spam') return null;
  const { name } = ruleFor('dot', { code: 550, enhanced: null, text: diagnostic });
  if (name === 'spam-trap') return 'spam_trap';
  return name === 'listed-content' ? 'listed_content' : null;
}

/** Less mail of a tag says little of what the other mail with it is like. */
const minOfTag = pauseRules.hard_bounces.rate.min;

/** The group of one mail that its reply is held against: the one with the least mail, of tags those with some. */
export function groupToBlame(ofMail: CountedGroup[]): CountedGroup | undefined {
  const sizeOf = ({ delivered, bounced }: CountedGroup) => delivered + bounced;
  return ofMail
    .filter((group) => group.kind !== 'tag' || sizeOf(group) >= minOfTag)
    .sort((a, b) => sizeOf(a) - sizeOf(b) || rankOf(a) - rankOf(b))[0];
}

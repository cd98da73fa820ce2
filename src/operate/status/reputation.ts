/**
 * Bounce and complaint rates against the thresholds of mailbox providers. Bounces: the usual terms of sending services,
 * good below 2 %, in danger above 5 %. Complaints: Gmail's and Yahoo's rules for senders, which ask for less than 0.1 %
 * and block from 0.3 % on. With too little mail a rate is not rated.
 */
import type { Counts } from '#mail/record/counts.ts';

export interface Rate {
  share: number | null;
  /** Null if there is too little mail to rate. */
  tone: 'good' | 'warn' | 'bad' | null;
  good: number;
  bad: number;
  /** The least mail for which the rate is rated. */
  min: number;
}

const bounces = { good: 0.02, bad: 0.05, min: 100 };
/** With 1000 deliveries, one complaint is 0.1 %. */
const complaints = { good: 0.001, bad: 0.003, min: 1000 };

export function bounceRate({ bounced, sent }: Pick<Counts, 'bounced' | 'sent'>): Rate {
  return rated(shareOf(bounced, sent), sent, bounces);
}

export function hardBounceRate({ hard, sent }: { hard: number; sent: number }): Rate {
  return rated(shareOf(hard, sent), sent, bounces);
}

export function complaintRate({ complained, delivered }: Pick<Counts, 'complained' | 'delivered'>): Rate {
  return rated(shareOf(complained, delivered), delivered, complaints);
}

function rated(share: number | null, of: number, terms: typeof bounces): Rate {
  return { share, ...terms, tone: share === null || of < terms.min ? null : toneOf(share, terms) };
}

function toneOf(share: number, { good, bad }: typeof bounces): Rate['tone'] {
  if (share < good) return 'good';
  return share < bad ? 'warn' : 'bad';
}

/** Null if `all` is 0. Capped at 1: mail sent before the window can be delivered in it. */
export function shareOf(count: number, all: number): number | null {
  return all === 0 ? null : Math.min(count / all, 1);
}

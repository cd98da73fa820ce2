/**
 * The plan by which a new source address becomes known to a group of receivers: a daily allowance that grows while it is used and
 * little goes wrong. Pure functions; the tables in docs/deliverability.md are made from them.
 *
 * A day begins 24 hours after the one before, counted from the first mail, or later with the first mail after a pause: days
 * without mail teach a receiver nothing, so they do not count.
 */
export interface WarmUp {
  /** From 1 on. */
  day: number;
  step: number;
  /** When the day began. */
  beganAt: number;
  /** Mail taken from the day's allowance. */
  used: number;
  /** Attempts of the day that the receivers put off because of the address. */
  deferred: number;
}

export const dayMs = 86_400_000;
const firstAllowance = 100;
const growth = 1.5;

/** The plan ends with the day after the last step, or after this many days. */
export const lastStep = 20;
export const maxDays = 60;

/** Fewer deferred attempts and complaints in a day are chance. */
const minDeferred = 5;
const minComplaints = 2;

export const newWarmUp = (now: number): WarmUp => ({ day: 1, step: 1, beganAt: now, used: 0, deferred: 0 });

/** Of an address that has been in use before there were plans, or whose operator says so. */
export const warm: WarmUp = { day: maxDays + 1, step: lastStep + 1, beganAt: 0, used: 0, deferred: 0 };

export const isWarm = ({ step, day }: WarmUp) => step > lastStep || day > maxDays;

/** Two significant digits. */
export const allowanceOf = (step: number) => Number((firstAllowance * growth ** (step - 1)).toPrecision(2));

/** The part of a day's allowance that is left to organizations with little mail. */
export const reserveOf = (allowance: number) => Math.floor(allowance / 8);

export const endOf = ({ beganAt }: WarmUp) => beganAt + dayMs;

/** What went wrong in a day: the parts of what was offered that was deferred, and of what was taken that was complained about. */
export interface Trouble {
  deferred: number;
  complained: number;
}

/** The least trouble that keeps the plan at its step, and that takes it a step back; docs/deliverability.md has them. */
export const troubles: Record<'keep' | 'back', Trouble> = {
  keep: { deferred: 0.05, complained: 0.001 },
  back: { deferred: 0.2, complained: 0.003 },
};

/** The least part of the allowance whose use takes the plan a step on. */
export const minUse = 0.25;

export interface Complaints {
  complained: number;
  delivered: number;
}

/** The step of the next day. `complaints`: of the receivers, about mail from any address. */
export function nextStep({ step, used, deferred }: WarmUp, complaints: Complaints): number {
  const { complained, delivered } = complaints;
  const trouble: Trouble = {
    deferred: deferred < minDeferred ? 0 : deferred / (deferred + used),
    complained: complained < minComplaints ? 0 : complained / Math.max(delivered, complained),
  };
  const reaches = (limit: Trouble) =>
    trouble.deferred >= limit.deferred || trouble.complained >= limit.complained;
  if (reaches(troubles.back)) return Math.max(step - 1, 1);
  return reaches(troubles.keep) || used < minUse * allowanceOf(step) ? step : step + 1;
}

/** The day at `now`, if the one that is given has ended by then. */
export function nextDay(warmUp: WarmUp, complaints: Complaints, now: number): WarmUp {
  const { day, beganAt } = warmUp;
  const days = Math.floor((now - beganAt) / dayMs);
  const step = nextStep(warmUp, complaints);
  return { day: day + 1, step, beganAt: beganAt + days * dayMs, used: 0, deferred: 0 };
}

/** If all goes well and enough is sent: the next day's allowance, null if the plan has ended by then, and the days left. */
export function forecastOf({ step, day }: WarmUp): { tomorrow: number | null; daysLeft: number } {
  const daysLeft = Math.min(lastStep - step, maxDays - day) + 1;
  return { tomorrow: daysLeft > 1 ? allowanceOf(step + 1) : null, daysLeft };
}

/** What several addresses may send together on the day that is so many days after today's, if all goes well. */
export function roomAfter(warmUps: readonly WarmUp[], days: number): number {
  const of = ({ step, day }: WarmUp) =>
    step + days > lastStep || day + days > maxDays ? Number.POSITIVE_INFINITY : allowanceOf(step + days);
  return warmUps.reduce((sum, each) => sum + of(each), 0);
}

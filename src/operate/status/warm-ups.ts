/** The source addresses that are being made known to receivers, as the operator sees them. */

import type { ReceiverGroup } from '#mail/deliver/receivers.ts';
import {
  allowanceOf,
  dayMs,
  endOf,
  forecastOf,
  isWarm,
  nextDay,
  reserveOf,
  type WarmUp,
} from '#mail/deliver/warm-up-plan.ts';
import { readWarmUps } from '#mail/record/rows/warm-up-rows.ts';
import { iso, utcMinute } from '#platform/base/clock.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import type { Need } from './need.ts';

export interface AddressWarmUp {
  address: string;
  receivers: ReceiverGroup;
  day: number;
  allowance: number;
  used: number;
  /** When the next day begins. */
  endsAt: number;
  /** If all goes well: the next day's allowance, null if there is none by then, and the days left. */
  tomorrow: number | null;
  daysLeft: number;
}

/** An address that has sent nothing to them for so long is left out. */
const shownMs = 30 * dayMs;

export async function readAddressWarmUps(
  db: Db,
  { warmUp, warmSources }: Pick<Config, 'warmUp' | 'warmSources'>,
  now: number,
): Promise<AddressWarmUp[]> {
  if (warmUp === 'off') return [];
  return (await readWarmUps(db)).flatMap(({ address, receivers, ...stored }) => {
    const today = dayAt(stored, now);
    const isShown =
      now - stored.beganAt < shownMs && !isWarm(today) && !new Set<string>(warmSources).has(address);
    if (!isShown) return [];
    const { day, used } = today;
    return [
      {
        address,
        receivers,
        day,
        used,
        allowance: allowanceOf(today.step),
        endsAt: endOf(today),
        ...forecastOf(today),
      },
    ];
  });
}

/** The next day begins in the database with its first mail. */
const dayAt = (stored: WarmUp, now: number) =>
  now < endOf(stored) ? stored : nextDay(stored, { complained: 0, delivered: 0 }, now);

/** `192.0.2.11 to Gmail: day 3, 112 of 230 today, 340 tomorrow, 18 days left` */
export function warmUpText({ address, receivers, ...plan }: AddressWarmUp): string {
  const { day, used, allowance, tomorrow, daysLeft } = plan;
  const next = tomorrow === null ? 'no limit tomorrow' : `${tomorrow} tomorrow`;
  const left = `${daysLeft} ${daysLeft === 1 ? 'day' : 'days'} left`;
  return `${address} to ${receivers}: day ${day}, ${used} of ${allowance} today, ${next}, ${left}`;
}

export const warmUpDocument = ({ endsAt, ...plan }: AddressWarmUp) => ({ ...plan, endsAt: iso(endsAt) });

/** The addresses that have used up their day, but for what is left to organizations with little mail. */
export function warmUpNeeds(warmUps: AddressWarmUp[]): Need[] {
  return warmUps
    .filter(({ used, allowance }) => used >= allowance - reserveOf(allowance))
    .map(({ address, receivers, used, allowance, endsAt }) => ({
      cause: 'warm_up',
      severity: 'watch',
      subject: address,
      since: null,
      figure: `${used} of ${allowance} to ${receivers} today, until ${utcMinute(endsAt)}`,
      advice:
        used > allowance
          ? 'A new address sends more than receivers expect of one, which hurts its reputation. Send less, or add an address.'
          : 'The address is new, and has used its allowance of today; more mail goes from other addresses of its pool, or waits. If receivers know the address, name it in POSTERN_WARM_SOURCES.',
      command: 'postern config',
      path: '/queue',
    }));
}

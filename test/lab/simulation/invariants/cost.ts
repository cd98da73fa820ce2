/** What waits costs nothing: work for the database has a cause outside, or is the bounded work of a clock. */
import type { Check } from './check.ts';

interface Cost {
  statements: number;
  commits: number;
}

/** Not by how much mail waits. Each is at least half as much again as what was measured. */
const atOnce: Cost = { statements: 300, commits: 15 };
/** A poll each second that asks whether anything was committed, and the watches. */
const eachAwakeMinute: Cost = { statements: 150, commits: 10 };
/** Maintenance, and a scan after each sleep; before closed doors, there are several sleeps a minute. */
const eachSleepOrMinute: Cost = { statements: 80, commits: 10 };
/** A call, an SMTP session, a post of a webhook, a question to DNS or a returned mail, with all that follows. */
const eachCause: Cost = { statements: 30, commits: 3 };
const eachStart: Cost = { statements: 350, commits: 15 };

const whatWaitsCostsNothing: Check = ({ minute }) => {
  const { statements, commits, causes, starts, minutes, sleeps, awakeMinutes } = minute;
  const allowed = (kind: keyof Cost) =>
    atOnce[kind] +
    // The first is covered by the above.
    eachSleepOrMinute[kind] * Math.max(Math.min(minutes, sleeps) - 1, 0) +
    eachAwakeMinute[kind] * awakeMinutes +
    eachCause[kind] * causes +
    eachStart[kind] * starts;
  if (statements <= allowed('statements') && commits <= allowed('commits')) return null;
  return {
    text: `${statements} statements and ${commits} commits in ${awakeMinutes.toFixed(1)} min awake with ${causes} causes and ${starts} starts`,
  };
};

export const cost = { whatWaitsCostsNothing };

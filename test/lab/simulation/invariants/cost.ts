/** What waits costs nothing: work for the database has a cause outside, or is the bounded work of a clock. */
import type { Check } from './check.ts';

/** A minute of a node: a look each second, the watches of each ten seconds. */
const statementsAtRest = 1_500;
const commitsAtRest = 60;
/** A call, an SMTP session or a post of a webhook, with all that follows. */
const statementsForCause = 150;
const commitsForCause = 25;

const whatWaitsCostsNothing: Check = ({ minute: { statements, commits, causes, minutes } }) => {
  const rest = Math.max(minutes, 1);
  if (
    statements <= statementsAtRest * rest + causes * statementsForCause &&
    commits <= commitsAtRest * rest + causes * commitsForCause
  )
    return null;
  return {
    text: `${statements} statements and ${commits} commits in ${minutes.toFixed(1)} min with ${causes} calls, sessions, posts and questions to DNS`,
  };
};

export const cost = { whatWaitsCostsNothing };

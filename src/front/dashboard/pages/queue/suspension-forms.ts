/** Suspends and resumes a destination, with the same functions as `postern queue suspend | resume`. */
import { z } from 'zod';
import { checkForm, oneLine, parsedBy } from '#front/dashboard/forms.ts';
import {
  type DashboardPage,
  type PageAnswer,
  type PageParts,
  redirect,
  type UserVisit,
} from '#front/dashboard/page.ts';
import { resume, suspend } from '#mail/queue/rows/suspensions.ts';
import { duration } from '#platform/settings/durations.ts';
import { readDestination } from '#platform/values/host-name.ts';
import { hrefOf } from './queue-rows.ts';
import { overview } from './routes.ts';

export const suspensionsPage: DashboardPage = {
  operator: {
    'POST /dashboard/queue/suspend': begin,
    'POST /dashboard/queue/resume': end,
  },
};

export const reason = oneLine('a reason; it is shown in the queue', 500);

export const destinationField = parsedBy(
  readDestination,
  'Enter a recipient domain, or a destination that the queue shows.',
);

const spanField = parsedBy((text) => {
  try {
    return duration.read(text);
  } catch {
    return null;
  }
}, 'Enter a duration, such as 30m, 2h or 3d, up to 365d.');

const suspension = z.object({ destination: destinationField, for: spanField, reason });

async function begin(visit: UserVisit, parts: PageParts): Promise<PageAnswer> {
  const { now, user } = visit;
  const checked = checkForm(visit.form, suspension);
  if (!checked.ok) return overview(visit, parts, checked.errors);
  const { destination, for: ms, reason: why } = checked.values;
  await suspend(parts.db, { destination, reason: why, createdAt: now, until: now + ms });
  parts.operatorJobs.invalidateSummary();
  parts.log.info({ by: user.email, destination, reason: why, ms }, 'a destination was suspended');
  return redirect(
    hrefOf(destination),
    `${destination} is suspended. Its mail stays in the queue; deliveries that are under way finish.`,
  );
}

async function end(visit: UserVisit, parts: PageParts): Promise<PageAnswer> {
  const checked = checkForm(visit.form, z.object({ destination: destinationField, reason }));
  if (!checked.ok) return overview(visit, parts, checked.errors);
  const { destination, reason: why } = checked.values;
  const ended = await resume(parts.db, destination, visit.now);
  parts.operatorJobs.invalidateSummary();
  if (!ended) return redirect('/dashboard/queue', { tone: 'bad', text: `${destination} is not suspended.` });
  parts.log.info({ by: visit.user.email, destination, reason: why }, 'a suspension was ended');
  return redirect(hrefOf(destination), `${destination} was resumed. Its mail is being sent.`);
}

/**
 * Retry, hold, release or cancel the mail that a filter matches. The page first shows how much mail matches; the action then
 * needs a reason and runs in the background if it takes long. The same functions as on the command line.
 */
import { z } from 'zod';
import { findOrganization, findOrganizationByName } from '#accounts/rows/organizations.ts';
import { checkForm, type Errors, emailField, optional, parsedBy, valuesOf } from '#front/dashboard/forms.ts';
import { count } from '#front/dashboard/number-format.ts';
import {
  type DashboardPage,
  type Flash,
  type PageAnswer,
  type PageParts,
  redirect,
  show,
  type UserVisit,
} from '#front/dashboard/page.ts';
import {
  changeable,
  dryRunQueueAction,
  type QueueAction,
  type QueueActionResult,
  type Selection,
} from '#mail/queue/rows/apply-queue-action.ts';
import { listQueue } from '#mail/queue/rows/queue-view.ts';
import { actionWords, beingSent, leftAlone } from '#operate/explain/action-words.ts';
import { toDomain } from '#platform/values/address.ts';
import { presentMail } from './routes.ts';
import { destinationField, reason } from './suspension-forms.ts';

export const queueActionsPage: DashboardPage = {
  operator: {
    'GET /dashboard/queue/action': (visit, parts) => preview(visit, parts),
    'POST /dashboard/queue/actions': submit,
  },
};

const kinds = Object.keys(actionWords) as [QueueAction, ...QueueAction[]];

const filters = z.object({
  action: z.enum(kinds, { error: 'Choose an action.' }),
  destination: optional(destinationField),
  domain: optional(parsedBy(toDomain, 'Enter a domain name, such as example.com.')),
  to: optional(emailField),
  org: optional(z.string().trim().toLowerCase().pipe(z.guid('No organization has this name.'))),
  status: optional(z.enum(['queued', 'deferred', 'held', 'scheduled'], { error: 'Choose a state.' })),
});

type Filters = z.output<typeof filters>;

const names = ['destination', 'domain', 'to', 'org', 'status'] as const;
const shownOfMany = 10;

async function preview(
  visit: UserVisit,
  parts: PageParts,
  typed: { reason?: string; errors?: Errors } = {},
): Promise<PageAnswer> {
  const fields = visit.context.method === 'POST' ? visit.form : visit.query;
  const named = await findOrganizationByName(parts.db, (fields.get('org') ?? '').trim());
  if (named) fields.set('org', named.id);
  const values = { action: 'retry', ...valuesOf(fields) } as Record<string, string>;
  const checked = checkForm(fields, filters);
  const isAsked = names.some((name) => (values[name] ?? '') !== '');
  const shown = checked.ok && isAsked ? await dryRun(checked.values, visit, parts) : null;
  const errors = { ...(isAsked && !checked.ok ? checked.errors : {}), ...shown?.errors, ...typed.errors };
  const data = {
    values,
    kinds,
    actions: actionWords,
    errors,
    found: shown?.found ?? null,
    reason: typed.reason,
  };
  return show('queue/action', 'Change queued mail', data);
}

async function dryRun(fields: Filters, { now }: UserVisit, parts: PageParts) {
  const { action, org: orgId, ...rest } = fields;
  const org = orgId === undefined ? null : await findOrganization(parts.db, orgId);
  if (orgId !== undefined && !org) return { errors: { org: 'No organization has this name or id.' } };
  const done = await dryRunQueueAction(parts.db, selectionOf(fields), action);
  // listQueue has no filter for an address.
  const status = rest.status ?? (changeable[action].length === 1 ? changeable[action][0] : undefined);
  const { to: _, status: __, ...plain } = rest;
  const some = rest.to
    ? []
    : await listQueue(
        parts.db,
        { ...plain, ...(orgId && { orgId }), ...(status && { status }), limit: shownOfMany + 20 },
        now,
      );
  const rows = some.filter((one) => changeable[action].includes(one.status)).slice(0, shownOfMany);
  const left = done.changed === 0 ? leftAlone(action, done.left) : null;
  return {
    found: { ...done, leftAlone: left, org: org?.name ?? null, rows: await presentMail(rows, parts, now) },
  };
}

function selectionOf({ action: _, org, ...rest }: Filters): Selection {
  const chosen = { ...rest, orgId: org };
  return Object.fromEntries(Object.entries(chosen).filter(([, value]) => value !== undefined));
}

/** How long the page waits for the action, which then continues in the background. */
const timeoutMs = 2_000;

async function submit(visit: UserVisit, parts: PageParts): Promise<PageAnswer> {
  const { operatorJobs, log } = parts;
  const by = visit.user.email;
  const checked = checkForm(visit.form, filters.extend({ reason }));
  const typed = visit.form.get('reason') ?? '';
  if (!checked.ok) return preview(visit, parts, { reason: typed, errors: checked.errors });
  const { reason: why, ...fields } = checked.values;
  const selection = selectionOf(fields);
  // Without a filter the action would change the whole queue; only the command line offers that, with an explicit option.
  if (Object.keys(selection).length === 0)
    return preview(visit, parts, {
      reason: typed,
      errors: { destination: 'Fill in at least one filter.' },
    });
  if (!operatorJobs.queueActions.start({ action: fields.action, selection, reason: why, by }))
    return redirect('/dashboard/queue', {
      tone: 'bad',
      text: 'Another action is running. Try again when it has finished.',
    });
  log.info({ by, order: fields.action, selection, reason: why }, 'a queue action was started');
  await operatorJobs.queueActions.waitUntilEnded(timeoutMs);
  return redirect('/dashboard/queue', flashOf(fields.action, operatorJobs.queueActions.last()));
}

function flashOf(
  action: QueueAction,
  run: { endedAt: number | null; result: QueueActionResult | null } | null,
): Flash {
  const { past } = actionWords[action];
  if (!run || run.endedAt === null)
    return { tone: 'note', text: 'The action is running. Its progress is shown below.' };
  if (!run.result)
    return {
      tone: 'bad',
      text: 'The action failed part-way: some mail was changed. See the server’s log, then run it again.',
    };
  const { changed, sending, left } = run.result;
  const also = sending > 0 ? ` ${beingSent(sending)} and not changed.` : '';
  if (changed > 0) return { tone: 'good', text: `${count(changed)} ${past}.${also}` };
  return {
    tone: 'bad',
    text: `Nothing was ${past}: ${leftAlone(action, left) ?? 'no queued mail matches'}.${also}`,
  };
}

/**
 * Retry, hold, release, cancel: whatever a filter finds. First it is shown how much that is; then the order is given, with
 * a reason, and goes on in the background where it takes long. The same functions as the command line's.
 */
import { z } from 'zod';
import { findOrganization } from '../../../db/accounts/organizations.ts';
import {
  dryRunQueueAction,
  movable,
  type QueueAction,
  type QueueActionResult,
  type Selection,
} from '../../../db/queue/apply-queue-action.ts';
import { listQueue } from '../../../db/queue/queue-view.ts';
import { domainOf, toDomain } from '../../../mail/address.ts';
import { actionWords, beingSent, leftAlone } from '../../../operate/explain/action-words.ts';
import { checkForm, type Errors, valuesOf } from '../../forms.ts';
import { count } from '../../number-format.ts';
import {
  type DashboardPage,
  type Flash,
  type PageAnswer,
  type PageParts,
  redirect,
  show,
  type UserVisit,
} from '../../page.ts';
import { presentMail } from './routes.ts';
import { destinationField, reason } from './suspension-forms.ts';

export const queueActionsPage: DashboardPage = {
  operator: {
    'GET /dashboard/queue/order': (visit, parts) => preview(visit, parts),
    'POST /dashboard/queue/orders': submit,
  },
};

const kinds = Object.keys(actionWords) as [QueueAction, ...QueueAction[]];

/** A field that is left empty asks for nothing. */
const optional = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess(
    (text) => (typeof text === 'string' && text.trim() === '' ? undefined : text),
    schema.optional(),
  );

const filters = z.object({
  order: z.enum(kinds, { error: 'Choose what to do.' }),
  destination: optional(destinationField),
  domain: optional(
    z
      .string()
      .transform(
        (text, context) =>
          toDomain(text.trim()) ?? wrong(context, 'That is no domain name, such as example.com.'),
      ),
  ),
  to: optional(
    z
      .string()
      .trim()
      .refine((text) => domainOf(text) !== null, 'That is no email address.'),
  ),
  org: optional(
    z
      .string()
      .trim()
      .toLowerCase()
      .refine((text) => z.guid().safeParse(text).success, "That is no organization's id."),
  ),
  status: optional(z.enum(['queued', 'deferred', 'held'], { error: 'That is no state that mail waits in.' })),
});

type Filters = z.output<typeof filters>;

function wrong(context: z.core.$RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}

const names = ['destination', 'domain', 'to', 'org', 'status'] as const;
const shownOfMany = 10;

async function preview(
  visit: UserVisit,
  parts: PageParts,
  given: { reason?: string; errors?: Errors } = {},
): Promise<PageAnswer> {
  const asked = visit.context.method === 'POST' ? visit.form : visit.query;
  const values = { order: 'retry', ...valuesOf(asked) } as Record<string, string>;
  const checked = checkForm(asked, filters);
  const isAsked = names.some((name) => (values[name] ?? '') !== '');
  const shown = checked.ok && isAsked ? await dryRun(checked.values, visit, parts) : null;
  const errors = { ...(isAsked && !checked.ok ? checked.errors : {}), ...shown?.errors, ...given.errors };
  const data = {
    values,
    kinds,
    orders: actionWords,
    errors,
    found: shown?.found ?? null,
    reason: given.reason,
  };
  const status = Object.keys(errors).length > 0 ? 422 : 200;
  return show('queue/order', 'Order to the queue', data, { status });
}

async function dryRun(asked: Filters, { now }: UserVisit, parts: PageParts) {
  const { order, org: orgId, ...rest } = asked;
  const org = orgId === undefined ? null : await findOrganization(parts.db, orgId);
  if (orgId !== undefined && !org) return { errors: { org: 'There is no such organization.' } };
  const done = await dryRunQueueAction(parts.db, selectionOf(asked), order);
  // Of an address the list has no filter of its own.
  const status = rest.status ?? (movable[order].length === 1 ? movable[order][0] : undefined);
  const { to: _, status: __, ...plain } = rest;
  const some = rest.to
    ? []
    : await listQueue(
        parts.db,
        { ...plain, ...(orgId && { orgId }), ...(status && { status }), limit: shownOfMany + 20 },
        now,
      );
  const rows = some.filter((one) => movable[order].includes(one.status)).slice(0, shownOfMany);
  const left = done.moved === 0 ? leftAlone(order, done.left) : null;
  return {
    found: { ...done, leftAlone: left, org: org?.name ?? null, rows: await presentMail(rows, parts, now) },
  };
}

function selectionOf({ order: _, org, ...rest }: Filters): Selection {
  const chosen = { ...rest, orgId: org };
  return Object.fromEntries(Object.entries(chosen).filter(([, value]) => value !== undefined));
}

/** As long as anybody waits for a page; then it goes on by itself. */
const timeoutMs = 2_000;

async function submit(visit: UserVisit, parts: PageParts): Promise<PageAnswer> {
  const { operatorJobs, log } = parts;
  const by = visit.user.email;
  const checked = checkForm(visit.form, filters.extend({ reason }));
  const why = visit.form.get('reason') ?? '';
  if (!checked.ok) return preview(visit, parts, { reason: why, errors: checked.errors });
  const { reason: given, ...asked } = checked.values;
  const selection = selectionOf(asked);
  // All that waits is nobody's filter: it is asked for by name, at the command line.
  if (Object.keys(selection).length === 0)
    return preview(visit, parts, {
      reason: why,
      errors: { destination: 'Say which mail: by one of these at least.' },
    });
  if (!operatorJobs.queueActions.start({ order: asked.order, selection, reason: given, by }))
    return redirect('/dashboard/queue', {
      tone: 'bad',
      text: 'Another order is being carried out; give yours when it is done.',
    });
  log.info({ by, order: asked.order, selection, reason: given }, 'an order to the queue');
  await operatorJobs.queueActions.waitUntilEnded(timeoutMs);
  return redirect('/dashboard/queue', flashOf(asked.order, operatorJobs.queueActions.last()));
}

function flashOf(
  order: QueueAction,
  run: { endedAt: number | null; result: QueueActionResult | null } | null,
): Flash {
  const { did } = actionWords[order];
  if (!run || run.endedAt === null)
    return { tone: 'note', text: 'The order is being carried out; below you see how far it has come.' };
  if (!run.result)
    return {
      tone: 'bad',
      text: 'The order broke off; some mail was moved. Look at the log, and give it again.',
    };
  const { moved, sending, left } = run.result;
  const also = sending > 0 ? ` ${beingSent(sending)}, and left alone.` : '';
  if (moved > 0) return { tone: 'good', text: `${count(moved)} ${did}.${also}` };
  return {
    tone: 'bad',
    text: `Nothing was ${did}: ${leftAlone(order, left) ?? 'no mail that waits matches'}.${also}`,
  };
}

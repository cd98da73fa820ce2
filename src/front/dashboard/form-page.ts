/** Helpers that the pages of an organization share: forms with errors, items that the path names, refusals, slots, exports. */
import { z } from 'zod';
import { csvStreamOf } from '#accounts/csv-text.ts';
import { whileAllowed } from '#front/http/authorize.ts';
import type { CallSlots } from '#front/http/server-busy.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { type Errors, valuesOf } from './forms.ts';
import { type OrgVisit, type PageBody, type PageView, type PageVisit, sendBody, show } from './page.ts';
import { notFound } from './page-error.ts';

/** A page with a form. A wrong form is shown again, as it was sent and with an error for each wrong field. */
export function showForm(
  view: string,
  title: string,
  { form }: PageVisit,
  data: object,
  errors: Errors,
): PageView {
  return show(view, title, { values: valuesOf(form), errors, ...data });
}

/** The item with the UUID in the path. `find` looks only in the organization, so items of others are not found. */
export async function itemIn<Item>(
  { context, org }: OrgVisit,
  noun: string,
  find: (id: string, orgId: string) => Promise<Item | null>,
): Promise<Item> {
  const { id } = context.params as { id: string };
  const item = z.guid().safeParse(id).success ? await find(id.toLowerCase(), org.id) : null;
  if (item === null) throw notFound(noun);
  return item;
}

/** The message of a refusal that the person can act on, such as a limit; any other error is thrown. */
export function asProblem(error: unknown): { problem: string } {
  if (error instanceof Refusal && error.code === 'BAD_REQUEST') return { problem: error.message };
  throw error;
}

/** Does long work in one of the organization's slots; refuses it if none is free. */
export function inSlot<Result>(
  slots: CallSlots,
  { context, org }: OrgVisit,
  work: () => Promise<Result>,
): Promise<Result> {
  return slots.during(context, org.id, work);
}

/** A browser that reads nothing for this long is disconnected; real time, as for all socket timeouts. */
const timeoutMs = 60_000;

/** Sends pages of CSV as a file, in one of the organization's slots. */
export function sendExport(
  { context, org }: OrgVisit,
  exports: CallSlots,
  filename: string,
  pages: AsyncGenerator<string>,
): PageBody {
  context.res.once('close', exports.take(context, org.id));
  context.res.setTimeout(timeoutMs, () => context.res.destroy());
  const csv = csvStreamOf(whileAllowed(context, pages, context.state.isStillAllowed!));
  return sendBody(csv, 'text/csv; charset=utf-8', {
    'Content-Disposition': `attachment; filename="${filename}"`,
  });
}

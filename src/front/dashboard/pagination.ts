/** Pages by key: `?after=ID` continues after a row, at the same cost for every page. */
import { z } from 'zod';
import type { PageVisit } from './page.ts';
import { notFound } from './page-error.ts';

export interface PageOfRows<Row> {
  rows: Row[];
  /** URL of the next page; null on the last. */
  next: string | null;
  isFirst: boolean;
}

/** Reads one row more than it shows, to know whether there is a next page. */
export async function pageOf<Row extends { id: string }>(
  { query, context }: PageVisit,
  size: number,
  read: (page: { after: string | undefined; limit: number }) => Promise<Row[]>,
): Promise<PageOfRows<Row>> {
  const after = query.get('after') ?? undefined;
  if (after !== undefined && !z.guid().safeParse(after).success) throw notFound();
  const found = await read({ after: after?.toLowerCase(), limit: size + 1 });
  const rows = found.slice(0, size);
  if (found.length <= size) return { rows, next: null, isFirst: after === undefined };
  const search = new URLSearchParams(query);
  search.set('after', rows.at(-1)!.id);
  return { rows, next: `${context.path}?${search}`, isFirst: after === undefined };
}

/** Export of all suppressions as CSV, streamed page by page; import from a file or text, all or nothing. */
import { Readable } from 'node:stream';
import { csvPages, ListFault, maxImported, readAddresses } from '../../../accounts/suppression-csv.ts';
import { goneSignal } from '../../../api/management.ts';
import { addSuppressions, suppressionOf } from '../../../db/accounts/suppressions.ts';
import { count } from '../../number-format.ts';
import {
  type DashboardPage,
  type OrgVisit,
  type PageAnswer,
  type PageParts,
  redirect,
  sendBody,
  show,
} from '../../page.ts';

export const listPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/suppressions/export': exportList,
    'GET /dashboard/o/:org/suppressions/import': () => form(),
    'POST /dashboard/o/:org/suppressions/import': importList,
  },
  // The largest import is about 3 MiB of addresses; form encoding adds to that.
  maxFormBytes: 12 * 1024 * 1024,
};

/** A browser that reads nothing for this long is disconnected; real time, as for all socket timeouts. */
const timeoutMs = 60_000;

function exportList({ context, org }: OrgVisit, { db, longWorkSlots }: PageParts): PageAnswer {
  context.res.once('close', longWorkSlots.exports.take(context, org.id));
  context.res.setTimeout(timeoutMs, () => context.res.destroy());
  const body = Readable.from(csvPages(db, org.id), { objectMode: false, highWaterMark: 1 });
  return sendBody(body, 'text/csv; charset=utf-8', {
    'Content-Disposition': 'attachment; filename="suppressions.csv"',
  });
}

async function importList(visit: OrgVisit, { db, eventSignal }: PageParts): Promise<PageAnswer> {
  const { org, base, now, context } = visit;
  const text = visit.form.get('list') ?? '';
  const read = await addressesIn(text);
  if ('fault' in read) return form(text, read.fault);
  const list = read.addresses.map((address) => suppressionOf(org.id, address, 'imported'));
  const added = await addSuppressions(db, list, now, goneSignal(context));
  eventSignal.notify();
  const before = list.length - added;
  const also = before === 0 ? '' : ` ${count(before)} ${before === 1 ? 'was' : 'were'} already on it.`;
  return redirect(
    `${base}/suppressions`,
    `${count(added)} ${added === 1 ? 'address was' : 'addresses were'} added to the list.${also}`,
  );
}

async function addressesIn(text: string): Promise<{ addresses: string[] } | { fault: string }> {
  try {
    const addresses = await readAddresses(Buffer.from(text), maxImported);
    return addresses.length > 0 ? { addresses } : { fault: 'The list has no addresses.' };
  } catch (error) {
    if (error instanceof ListFault) return { fault: `Nothing was imported: ${error.message}.` };
    throw error;
  }
}

/** A longer text is not sent back with the error: nobody would correct it by hand. */
const maxShownLength = 20_000;

function form(text = '', error?: string): PageAnswer {
  const value = text.length > maxShownLength ? '' : text;
  const data = { value, error, max: maxImported };
  return show('suppressions/import', 'Import suppressions', data, { status: error ? 422 : 200 });
}

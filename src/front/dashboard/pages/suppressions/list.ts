/** Export of all suppressions, or of those of a stream, as CSV, streamed page by page; import from a file or text. */
import { findStream } from '#accounts/rows/streams.ts';
import {
  csvPages,
  type ImportedAddresses,
  ListError,
  linesText,
  maxImported,
  readAddresses,
} from '#accounts/suppression-csv.ts';
import { importAddresses } from '#accounts/suppression-list.ts';
import { goneSignal } from '#front/api/management.ts';
import { sendExport } from '#front/dashboard/form-page.ts';
import { valuesOf } from '#front/dashboard/forms.ts';
import { count } from '#front/dashboard/number-format.ts';
import { type DashboardPage, type PageView, redirect, show } from '#front/dashboard/page.ts';
import { notFound } from '#front/dashboard/page-error.ts';
import { formBody } from '#front/http/body-limits.ts';

export const listPage: DashboardPage = {
  organization: {
    async 'GET /dashboard/o/:org/suppressions/export'(visit, { db, longWorkSlots }) {
      const { org, query } = visit;
      const stream = query.get('stream') ?? undefined;
      if (stream !== undefined && !(await findStream(db, org.id, stream))) throw notFound('stream');
      const filename = stream === undefined ? 'suppressions.csv' : `suppressions-${stream}.csv`;
      return sendExport(visit, longWorkSlots.exports, filename, csvPages(db, org.id, stream));
    },
    'GET /dashboard/o/:org/suppressions/import': () => form(),
    async 'POST /dashboard/o/:org/suppressions/import'({ org, base, now, context, form: sent }, parts) {
      const text = sent.get('list') ?? '';
      const read = await addressesIn(text);
      if ('problem' in read) return form(valuesOf(sent).list, read.problem);
      const change = { ...parts, orgId: org.id, now };
      const { added, before } = await importAddresses(change, read.addresses, goneSignal(context));
      const also = before === 0 ? '' : ` ${count(before)} ${before === 1 ? 'was' : 'were'} already on it.`;
      return redirect(
        `${base}/suppressions`,
        `${count(added)} ${added === 1 ? 'address was' : 'addresses were'} added to the list.${also}${leftOut(read)}`,
      );
    },
  },
  // The largest import is about 3 MiB of addresses; form encoding adds to that.
  form: formBody({ largest: 12 * 1024 * 1024, fields: 1_000 }),
};

async function addressesIn(text: string): Promise<ImportedAddresses | { problem: string }> {
  try {
    const list = await readAddresses(Buffer.from(text), maxImported);
    return list.addresses.length > 0 ? list : { problem: 'The list has no addresses.' };
  } catch (error) {
    if (error instanceof ListError) return { problem: `Nothing was imported: ${error.message}.` };
    throw error;
  }
}

function leftOut(list: ImportedAddresses): string {
  return list.rejected === 0 ? '' : ` Left out, because they have no email address: ${linesText(list)}.`;
}

function form(text = '', error?: string): PageView {
  const data = { value: text, error, max: maxImported };
  return show('suppressions/import', 'Import suppressions', data, { status: error ? 422 : 200 });
}

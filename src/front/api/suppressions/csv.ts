/**
 * /api/public/suppressions.csv: export and import of the whole list. Lines without an address are left out of an import, and
 * listed in its answer.
 */
import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import { csvStreamOf } from '#accounts/csv-text.ts';
import { requireStreamName } from '#accounts/manage-streams.ts';
import {
  csvPages,
  type ImportedAddresses,
  ListError,
  maxImported,
  readAddresses,
} from '#accounts/suppression-csv.ts';
import { importAddresses } from '#accounts/suppression-list.ts';
import {
  answer,
  authorizeManager,
  goneSignal,
  type Management,
  managementEndpoint,
} from '#front/api/management.ts';
import { whileAllowed } from '#front/http/authorize.ts';
import { csvBody } from '#front/http/body-limits.ts';
import { readQuery } from '#front/http/query.ts';
import { readBody } from '#front/http/request-body.ts';
import { CallSlots, refuseWhileBusy } from '#front/http/server-busy.ts';
import type { ByteHold } from '#platform/base/limits/byte-budget.ts';
import { type Issue, Refusal } from '#platform/values/refusal.ts';
import { storedStream } from '#platform/values/stream.ts';
import { listQuery, suppressionSchemas } from './schema.ts';

const limits = csvBody(10 * 1024 * 1024);
/** Maximum number of exports that an organization may have in progress; each holds a page in memory. */
const maxExports = 4;
const busyMs = 1000;

export const csvEndpoints = [
  managementEndpoint('Suppressions', {
    route: 'GET /suppressions.csv',
    operationId: 'exportSuppressions',
    summary: 'Export suppressions',
    description:
      'The whole list as CSV (RFC 4180) in UTF-8. A cell that a spreadsheet would take for a formula starts with an ' +
      'apostrophe, which an import removes.',
    query: listQuery,
    response: {
      description: 'The list, with the columns `address`, `reason` and `createdAt`.',
      content: { 'text/csv': z.string() },
    },
    handler: exportList,
  }),
  managementEndpoint('Suppressions', {
    route: 'POST /suppressions.csv',
    operationId: 'importSuppressions',
    summary: 'Import suppressions',
    description:
      'Adds all addresses of a list, one in each line. In CSV the first column counts, with or without a line of headings. ' +
      'Empty lines and lines that start with # are skipped. Lines without an address are left out, and the response lists ' +
      'them. If no line has an address, nothing is imported. You can repeat an import that was interrupted.',
    query: listQuery,
    body: {
      description: 'The addresses: at most 100,000 addresses and 10 MiB.',
      content: { 'text/csv': z.string() },
      limits,
    },
    response: answer('The addresses are on the list.', suppressionSchemas.ImportAnswer),
    errors: {
      VALIDATION_ERROR:
        'No line has an email address, or very many have none; `issues` lists the first such lines.',
      BAD_REQUEST: 'The body is not CSV or is too large.',
    },
    handler: importList,
  }),
];

function exportList({ authorize, db }: Management): Middleware {
  const slots = new CallSlots({ ofOne: maxExports });
  return async (context) => {
    const orgId = await authorizeManager(context, authorize, async (id) => slots.takeUntilSent(context, id));
    const stream = storedStream(readQuery(context, listQuery).stream) ?? undefined;
    context.status = 200;
    context.attachment('suppressions.csv');
    context.type = 'text/csv; charset=utf-8';
    if (context.method === 'HEAD') return;
    const isStillAllowed = () => authorize.isStillAllowed(context, 'full_access');
    context.body = csvStreamOf(whileAllowed(context, csvPages(db, orgId, stream), isStillAllowed));
  };
}

function importList({ authorize, db, admission, clock, eventSignal }: Management): Middleware {
  return async (context) => {
    let slot: ByteHold | null = null;
    try {
      const orgId = await authorizeManager(context, authorize, async (id) => {
        slot = await admission.acquire(id);
        if (!slot) refuseWhileBusy(context, admission.maxSlots, busyMs);
      });
      const { addresses, ...rejected } = await addressesIn(context, slot!);
      const stream = await requireStreamName(db, orgId, readQuery(context, listQuery).stream);
      const change = { db, orgId, stream, now: clock.now(), eventSignal };
      const imported = await importAddresses(change, addresses, goneSignal(context));
      context.body = { success: true, ...imported, ...rejected };
    } finally {
      (slot as ByteHold | null)?.release();
    }
  };
}

async function addressesIn(context: Context, slot: ByteHold): Promise<ImportedAddresses> {
  const bytes = await readBody(context.req, slot, limits);
  try {
    return await readAddresses(bytes, maxImported);
  } catch (error) {
    if (!(error instanceof ListError)) throw error;
    const message = `Nothing was imported: ${error.message}.`;
    if (error.lines.length === 0) throw new Refusal('BAD_REQUEST', message);
    throw new Refusal('VALIDATION_ERROR', message, {
      issues: error.lines.map((one) => lineIssue(one.line, one.text)),
    });
  }
}

function lineIssue(line: number, received: string): Issue {
  return {
    code: 'custom',
    expected: 'an email address',
    received,
    path: ['line', String(line)],
    message: `line ${line}: must be an email address`,
  };
}

/**
 * /api/public/suppressions.csv: the list as a whole, out and in. It goes out page by page as the client takes it, so that
 * memory holds one page of however many; it comes in whole or not at all.
 */
import { Readable } from 'node:stream';
import type { Context, Middleware } from 'koa';
import { csvPages, ListFault, maxImported, readAddresses } from '../../accounts/suppression-csv.ts';
import { addSuppressions, suppressionOf } from '../../db/accounts/suppressions.ts';
import { Refusal } from '../../mail/refusal.ts';
import type { Slot } from '../admission.ts';
import { type AddManagementRoutes, authorizeManager, goneSignal, type Management } from '../management.ts';
import { readBody } from '../request-body.ts';
import { createSlotsPerOrganization, refuseWhileBusy } from '../server-busy.ts';

const form = { type: 'text/csv', largest: 10 * 1024 * 1024 } as const;
/** Of an organization, at once: each holds a page. */
const maxExports = 4;
const busyMs = 1000;
/** How long a client may take nothing: on the real clock, as all of a socket's patience. */
const timeoutMs = 60_000;

export const addCsvRoutes: AddManagementRoutes = (router, inBounds, parts) => {
  router.get('/suppressions.csv', inBounds, exportList(parts));
  router.post('/suppressions.csv', inBounds, importList(parts));
};

function exportList({ authorize, db }: Management): Middleware {
  const places = createSlotsPerOrganization(maxExports);
  return async (context) => {
    let leave = () => {};
    context.res.once('close', () => leave());
    const orgId = await authorizeManager(context, authorize, async (one) => {
      leave = places.take(context, one);
    });
    context.status = 200;
    context.attachment('suppressions.csv');
    context.type = 'text/csv; charset=utf-8';
    context.res.setTimeout(timeoutMs, () => context.res.destroy());
    if (context.method !== 'HEAD')
      context.body = Readable.from(csvPages(db, orgId), { objectMode: false, highWaterMark: 1 });
  };
}

function importList({ authorize, db, admission, clock, eventSignal }: Management): Middleware {
  return async (context) => {
    let place: Slot | null = null;
    try {
      const orgId = await authorizeManager(context, authorize, async (one) => {
        place = await admission.acquire(one, 0);
        if (!place) refuseWhileBusy(context, admission.maxSlots, busyMs);
      });
      const list = (await addressesIn(context, place!)).map((address) =>
        suppressionOf(orgId, address, 'imported'),
      );
      const added = await addSuppressions(db, list, clock.now(), goneSignal(context));
      eventSignal.ring();
      context.body = { success: true, added, before: list.length - added };
    } finally {
      (place as Slot | null)?.release();
    }
  };
}

async function addressesIn(context: Context, place: Slot): Promise<string[]> {
  const bytes = await readBody(context.req, place, form);
  try {
    return await readAddresses(bytes, maxImported);
  } catch (error) {
    if (!(error instanceof ListFault)) throw error;
    const message = `Nothing was imported: ${error.message}.`;
    if (error.lines.length === 0) throw new Refusal('BAD_REQUEST', message);
    throw new Refusal('VALIDATION_ERROR', message, {
      issues: error.lines.map(({ line, text }) => ({
        code: 'custom',
        expected: 'an email address',
        received: text,
        path: ['line', String(line)],
        message: `line ${line}: must be an email address`,
      })),
    });
  }
}

/**
 * docs/api.md, section 2, and docs/design.md: what each field of a send takes and refuses. What is refused leaves nothing
 * behind.
 */
import test from 'ava';
import { isError, isInvalid, isSent } from './answer.ts';
import { openTenant, sharedWorld, someone, type Tenant } from './client.ts';
import { readSentences } from './fields.ts';

let [refused, accepted]: Tenant[] = [];
const world = sharedWorld(async (made) => {
  refused = await openTenant(made, { quota: 100 });
  accepted = await openTenant(made);
});

const shown = (fields: object) => JSON.stringify(fields).slice(0, 80);
/** No two are repeats of each other. */
let sends = 0;

for (const { sentence, isAlone, takes, refuses } of readSentences())
  (isAlone ? test.serial : test)(sentence, async (t) => {
    for (const fields of takes) {
      const own = { to: someone('nowhere.invalid'), subject: `Hello ${sends++}`, ...fields };
      isSent(t, await accepted!.send(own), undefined, shown(fields));
    }
    for (const { path, fields } of refuses) {
      const answer = await refused!.send(fields);
      if (path === 'BAD_REQUEST') isError(t, answer, '400 BAD_REQUEST', shown(fields));
      else isInvalid(t, answer, [path], shown(fields));
    }
  });

test.after('a refused request leaves nothing behind', async (t) => {
  t.deepEqual(await refused!.books(), { emails: 0, quota: 100, wallet: 0, ledger: 100 });
  for (const table of ['deliveries', 'events', 'idempotency'])
    t.deepEqual(await world().db(table).where({ org_id: refused!.orgId }), [], table);
});

/** Rows of received mail: found by their owner only, listed newest first, counted in their store, and deleted when they are old. */
import { randomBytes } from 'node:crypto';
import test from 'ava';
import { kinds } from '#lab/database/databases.ts';
import { openMigrated } from '#lab/database/open-migrated.ts';
import { receivedMail } from '#lab/received.ts';
import {
  deleteOldReceived,
  findReceived,
  insertReceived,
  listReceived,
  rawOf,
  storedBytes,
} from '#mail/received/rows/received-mails.ts';
import { newId } from '#platform/base/id.ts';

const [ours, theirs] = [newId(), newId()];

for (const kind of kinds) {
  test(`${kind}: a mail is its owner's, with the bytes that came`, async (t) => {
    const { db } = await openMigrated(t, kind);
    const [small, large] = [
      Buffer.from('From: a@b.invalid\r\n\r\n\0\xff\x01', 'latin1'),
      Buffer.concat([Buffer.from('Received: '), randomBytes(300_000)]),
    ];
    const mails = [small, large].map((raw) => receivedMail({ orgId: ours, raw }));
    await db.transaction((trx) => insertReceived(trx, mails));
    for (const { raw, ...mail } of mails) {
      t.deepEqual(await findReceived(db, ours, mail.id), mail);
      t.deepEqual(await rawOf(db, ours, mail.id), raw);
      t.is(await findReceived(db, theirs, mail.id), null);
      t.is(await rawOf(db, theirs, mail.id), null);
    }
    t.deepEqual(await listReceived(db, theirs, { limit: 10 }), []);
  });

  test(`${kind}: pages go on where the last one ended, the newest first`, async (t) => {
    const { db } = await openMigrated(t, kind);
    const mails = Array.from({ length: 5 }, () => receivedMail({ orgId: ours }));
    await db.transaction((trx) => insertReceived(trx, mails));
    const ids = mails.map(({ id }) => id).reverse();
    const first = await listReceived(db, ours, { limit: 3 });
    const rest = await listReceived(db, ours, { limit: 3, before: first.at(-1)!.id });
    t.deepEqual(
      [first, rest].map((page) => page.map(({ id }) => id)),
      [ids.slice(0, 3), ids.slice(3)],
    );
  });

  test(`${kind}: a store counts what is kept, and old mails make room in it`, async (t) => {
    const { db } = await openMigrated(t, kind);
    const mails = [
      receivedMail({ orgId: ours, at: 1000, raw: Buffer.alloc(10) }),
      receivedMail({ orgId: theirs, at: 2000, raw: Buffer.alloc(20) }),
      receivedMail({ orgId: ours, at: 3000, raw: Buffer.alloc(40) }),
    ];
    for (const mail of mails) await db.transaction((trx) => insertReceived(trx, [mail]));
    const stored = () => Promise.all([ours, theirs].map((orgId) => storedBytes(db, orgId)));
    t.deepEqual(await stored(), [50, 20]);
    t.is(await deleteOldReceived(db, 1000), 0);
    t.is(await deleteOldReceived(db, 3000), 2);
    t.deepEqual(await stored(), [40, 0]);
    t.deepEqual(
      (await listReceived(db, ours, { limit: 10 })).map(({ id }) => id),
      [mails[2]!.id],
    );
  });

  test(`${kind}: one organization receives the mail of a domain`, async (t) => {
    const { db } = await openMigrated(t, kind);
    const insert = async (receives: boolean) => {
      const orgId = newId();
      await db('organizations').insert({ id: orgId, name: orgId, created_at: 1, quota_since: 1 });
      await db('domains').insert({
        id: newId(),
        org_id: orgId,
        name: 'x.invalid',
        status: 'verified',
        dkim_selector: 's',
        dkim_public_key: '',
        dkim_private_key: '',
        created_at: 1,
        receives,
      });
    };
    await insert(false);
    await insert(true);
    await insert(false);
    await t.throwsAsync(insert(true), { message: /unique/i });
  });
}

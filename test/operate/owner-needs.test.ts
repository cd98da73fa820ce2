/** What the owners of an organization see as wrong, on both databases: their own troubles, and nothing of anybody else's. */
import test from 'ava';
import { v7 as uuid } from 'uuid';
import { findOrganization } from '#accounts/rows/organizations.ts';
import { totalOf } from '#front/dashboard/pages/overview/figures.ts';
import { kinds } from '#lab/database/databases.ts';
import { minute, now, openQueue } from '#lab/database/queue-rows.ts';
import { publishPools } from '#mail/queue/rows/ip-pools.ts';
import { readOwnerNeeds } from '#operate/status/owner-needs.ts';

for (const kind of kinds) {
  test(`${kind}: owners see their organization's troubles, and none of another's`, async (t) => {
    const { db, add, newOrg, orgId } = await openQueue(t, kind);
    const other = await newOrg('Other');
    await db('organizations').update({ quota_limit: null });
    const read = async (id: string) => {
      const org = (await findOrganization(db, id))!;
      const needs = await readOwnerNeeds({
        db,
        org,
        counts: totalOf([]),
        lowShare: 0.1,
        storeBytes: 2 ** 30,
        now,
      });
      t.true(needs.every(({ command, traffic }) => command === '' && traffic === undefined));
      return needs;
    };
    const domain = { org_id: orgId, dkim_selector: 's', dkim_public_key: 'p', dkim_private_key: 'k' };
    const domains = [
      ...['a', 'b', 'c', 'd'].map((name) => ({ name: `${name}.invalid`, status: 'pending', failures: 0 })),
      { name: 'lapsed.invalid', status: 'verified', failures: 2, failing_since: now - minute },
      { name: 'fine.invalid', status: 'verified', failures: 0 },
    ];
    for (const one of domains) await db('domains').insert({ id: uuid(), created_at: now, ...domain, ...one });
    const webhook = {
      org_id: orgId,
      types: '[]',
      secret: '',
      after_position: 0,
      created_at: 0,
      updated_at: 0,
    };
    for (const [url, reason] of [
      ['https://gone.invalid/', 'it answered 410'],
      ['https://off.invalid/', 'disabled by its owner'],
    ])
      await db('webhooks').insert({ id: uuid(), ...webhook, url, status: 'disabled', reason });
    const problem = {
      category: 'other',
      count: 3,
      host: null,
      bouncedAt: null,
      reply: '450 for bob@secret.invalid',
    };
    for (const [name, cause] of [
      ['mine.invalid', 'refusing'],
      ['shared.invalid', 'hanging'],
      ['secret.invalid', 'refusing'],
      ['gone.invalid', 'unreachable'],
      ['failing.invalid', 'dns_failing'],
      ['disk.invalid', 'storage_full'],
    ] as const) {
      const failing = { ...problem, cause, since: now - 2 * minute, at: now - minute };
      const state = {
        connections: 0,
        limit: 5,
        waiting: 0,
        circuit: null,
        busySince: null,
        problem: failing,
      };
      await db('destinations').insert({ name, node: 'a', state: JSON.stringify(state), at: now });
    }
    await add({ recipient: 'ann@mine.invalid' }, { recipient: 'ann@shared.invalid' });
    await add(...['gone', 'failing', 'disk'].map((name) => ({ recipient: `ann@${name}.invalid` })));
    await add({ recipient: 'ann@full.invalid', created_at: now - 90 * minute });
    await add({ recipient: 'ann@over.invalid', created_at: now - 80 * minute });
    await add(...['shared', 'secret'].map((name) => ({ recipient: `bob@${name}.invalid`, org_id: other })));

    const mine = await read(orgId);
    t.deepEqual(
      mine.map(({ cause, subject, severity, figure }) => `${cause} ${subject} ${severity}: ${figure}`),
      [
        'domain_unverified lapsed.invalid act: its mail is sent without a valid signature',
        'webhook_failing https://gone.invalid/ act: disabled',
        'domain_unverified a.invalid watch: its mail is refused here',
        'domain_unverified b.invalid watch: its mail is refused here',
        'refusing mine.invalid watch: refuses or defers our mail',
        'dns_failing failing.invalid watch: cannot be looked up: its name servers give no answer',
        'unreachable gone.invalid watch: cannot be reached',
        'hanging shared.invalid watch: does not answer in time',
        'storage_full disk.invalid watch: has no space for mail',
        'deferred full.invalid watch: mail has waited for 1 hour 30 minutes',
        'deferred over.invalid watch: mail has waited for 1 hour 20 minutes',
      ],
    );
    t.false(
      JSON.stringify(mine).includes('secret.invalid'),
      'nor a reply to the mail of another organization',
    );
    const theirs = await read(other);
    t.deepEqual(theirs.map(({ subject }) => subject).sort(), ['secret.invalid', 'shared.invalid']);
    t.true(theirs.every(({ path }) => path.startsWith(`/o/${other}/`)));
  });

  test(`${kind}: credits that are low or spent, and mail without a source address`, async (t) => {
    const { db, add, orgId } = await openQueue(t, kind);
    const read = async (row: object) => {
      await db('organizations').where({ id: orgId }).update(row);
      const org = (await findOrganization(db, orgId))!;
      const needs = await readOwnerNeeds({
        db,
        org,
        counts: totalOf([]),
        lowShare: 0.1,
        storeBytes: 2 ** 30,
        now,
      });
      return needs.map(({ cause, severity, figure }) => `${cause} ${severity}: ${figure}`);
    };
    const quota = { quota_limit: 100, quota_since: now };
    t.deepEqual(await read({ ...quota, quota_used: 80 }), []);
    t.deepEqual(await read({ ...quota, quota_used: 95, wallet: 7 }), [
      'credits watch: 5 of 100 left in the quota, 7 in the wallet',
    ]);
    t.deepEqual(await read({ ...quota, quota_used: 100, wallet: 0 }), ['credits act: none left']);
    await db('received_stores').insert({ org_id: orgId, mails: 1, bytes: Math.round(0.97 * 2 ** 30) });
    t.deepEqual(await read({ quota_limit: null }), [
      'store_full act: received mail takes 97% of POSTERN_RECEIVED_STORE',
    ]);
    await db('received_stores').delete();
    await publishPools(db, 'a', ['default'], now);
    t.deepEqual(await read({ quota_limit: null, pool: 'bulk' }), [], 'nothing waits');
    await add({ recipient: 'ann@there.invalid' });
    const said = ['no_source act: mail waits for a source address'];
    t.deepEqual(await read({ pool: 'bulk' }), said);
  });
}

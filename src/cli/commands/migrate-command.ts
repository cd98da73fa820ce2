/**
 * `postern migrate`: upgrades the schema to the version of this program, while no node of another version runs. The server
 * does the same when it starts; no other command does.
 */
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { CommandContext } from '#cli/command-context.ts';
import { refuseMoved } from '#platform/database/admin/moved-marker.ts';
import { lockDataDir } from '#platform/database/engine/data-dir-lock.ts';
import { readNodeId } from '#platform/database/engine/node-id.ts';
import { type Db, openExisting, type Trx } from '#platform/database/engine/open.ts';
import { migrate, migrationsOf, type Upgrade, upgradeNotice } from '#platform/database/schema/migrate.ts';
import { refuseOtherNodes } from '#platform/database/tables/nodes.ts';
import { noDatabase } from '#platform/settings/installation.ts';

export function migrateCommands(program: Command, context: CommandContext): void {
  program
    .command('migrate')
    .description(
      'Upgrade the database schema to the version of this program, while no server of another version runs.',
    )
    .action(() => run(context));
}

async function run(context: CommandContext): Promise<void> {
  const { out, config } = context;
  refuseMoved(config());
  const db = await openExisting(config());
  if (db === null) throw noDatabase(config());
  try {
    const { done, pending } = await migrationsOf(db);
    if (done.length === 0) throw noDatabase(config());
    const upgrade = await upgradeAlone(context, db, pending.length > 0);
    const version = done.at(-1)!;
    out.print(upgrade ?? { from: version, to: version, steps: 0 }, {
      fields: upgrade ? { 'upgraded from': upgrade.from, to: upgrade.to } : { 'up to date': version },
    });
  } finally {
    await db.destroy();
  }
}

/** The lock keeps out a server of this data directory; servers of others are listed in the table of nodes. */
async function upgradeAlone(
  { out, config, now }: CommandContext,
  db: Db,
  isDue: boolean,
): Promise<Upgrade | null> {
  const { dataDir } = config();
  const unlock = isDue && existsSync(dataDir) ? await lockDataDir(dataDir, 'upgrade') : async () => {};
  try {
    return await migrate(db, async (upgrade: Upgrade, trx: Trx) => {
      await refuseOtherNodes(trx, { self: readNodeId(dataDir), now: now() });
      out.warn(upgradeNotice(upgrade));
    });
  } finally {
    await unlock();
  }
}

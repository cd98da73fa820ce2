/**
 * `postern secret`: replaces the secret that encrypts stored keys and signs links, while everything can be decrypted at any
 * time. The file contains the new secret before anything is encrypted with it, and the old secret as long as anything is
 * encrypted with that. So a command that is killed has lost nothing and can be repeated. A running server notices the change
 * of the file.
 *
 * If the secret is set by a setting, the operator changes the setting, and `reseal` does the rest.
 */
import { statSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import { countSealed, resealAll } from '#accounts/rows/sealed-columns.ts';
import { createSeal } from '#accounts/seal.ts';
import { timeSpan } from '#cli/args/arguments.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { iso } from '#platform/base/clock.ts';
import {
  fingerprint,
  fixedSecrets,
  newSecret,
  readSecrets,
  secretFile,
  writeSecrets,
} from '#platform/base/secrets.ts';
import { lockDataDir } from '#platform/database/engine/data-dir-lock.ts';

const month = 30 * 24 * 60 * 60_000;
/** A running server may still store keys that it encrypted with the old secret shortly before. */
const resealDelayMs = 3_000;

export function secretCommands(program: Command, context: CommandContext): void {
  const secret = program
    .command('secret')
    .description('Manage the secrets that encrypt stored keys and sign links.');
  secret
    .command('show')
    .description('List the secrets by fingerprint, with the number of keys encrypted with each.')
    .action(() => show(context));
  secret
    .command('rotate')
    .description(
      'Create a new secret and encrypt all stored keys with it; a running server notices the change.',
    )
    .option('--only-node', 'confirm, on PostgreSQL, that no other node uses this database')
    .action((options: { onlyNode?: true }) => rotate(context, options));
  secret
    .command('reseal')
    .description('Encrypt all stored keys with the current secret.')
    .action(async () => {
      const resealed = await reseal(context);
      context.out.print({ resealed }, { fields: { resealed } });
    });
  secret
    .command('retire')
    .description(
      'Delete all secrets except the current one; links and addresses signed with them become invalid.',
    )
    .option('--after <TIME>', 'minimum age of the current secret', timeSpan, month)
    .action((options: { after: number }) => retire(context, options));
}

async function show({ db, out, secrets, config }: CommandContext): Promise<void> {
  const known = [];
  for (const [index, each] of secrets().all().entries()) {
    const { all, closed } = await countSealed(await db(), createSeal(fixedSecrets(each)).opens);
    known.push({ secret: fingerprint(each), isCurrent: index === 0, sealed: all - closed });
  }
  const { closed: unopened } = await countSealed(await db(), createSeal(secrets()).opens);
  const from = config().secret === null ? secretFile(config().dataDir) : 'POSTERN_SECRET';
  out.print(
    { from, secrets: known, unopened },
    {
      head: ['SECRET', 'IS', 'SEALED'],
      rows: known.map(({ secret, isCurrent, sealed }) => [secret, isCurrent ? 'current' : 'other', sealed]),
      empty: '',
    },
  );
  if (unopened > 0)
    out.warn(`${unopened} keys in the database cannot be decrypted with any of these secrets`);
}

async function rotate(context: CommandContext, { onlyNode }: { onlyNode?: true }): Promise<void> {
  const { out, config } = context;
  const { dataDir, databaseUrl, secret } = config();
  if (secret !== null) {
    throw new Failure(
      'the secret is set by POSTERN_SECRET. Put the new secret into POSTERN_SECRET_OTHERS on every node and restart it; ' +
        'then swap the two settings and restart each node again; then run `postern secret reseal`',
    );
  }
  if (databaseUrl !== null && !onlyNode) {
    throw new Failure(
      'other nodes may use this database and must have the new secret first: set it as POSTERN_SECRET on all of ' +
        'them (docs/operations.md has the steps), or give --only-node',
    );
  }
  context.secrets();
  const unlock = await lockDataDir(dataDir, 'change secrets');
  try {
    const file = secretFile(dataDir);
    const created = newSecret();
    writeSecrets(file, [created, ...readSecrets(file)]);
    context.secrets().refresh();
    const result = { secret: fingerprint(created), resealed: await reseal(context) };
    out.print(result, { fields: result });
    out.warn(
      'back up the new secret. The old secret still verifies the return paths and tracking links of mail already sent; ' +
        'after a month or more, delete it with `postern secret retire`',
    );
  } finally {
    await unlock();
  }
}

async function reseal({ db, out, secrets }: CommandContext): Promise<number> {
  const onProgress = (count: number) => out.progress(`${count} seen so far`);
  return resealAll(await db(), createSeal(secrets()).renew, onProgress);
}

async function retire(context: CommandContext, { after }: { after: number }): Promise<void> {
  const { db, out, config, now, secrets } = context;
  const { dataDir, secret } = config();
  if (secret !== null) {
    throw new Failure(
      'the secrets come from settings; remove the old one from POSTERN_SECRET_OTHERS and restart',
    );
  }
  secrets();
  const unlock = await lockDataDir(dataDir, 'change secrets');
  try {
    const file = secretFile(dataDir);
    const [current, ...others] = readSecrets(file);
    if (others.length === 0) throw new Failure('there is only the current secret; nothing to retire');
    const since = statSync(file).mtimeMs;
    if (now() - since < after) {
      throw new Failure(
        `the current secret has been in use only since ${iso(since)}: bounces and complaints of older mail would be ` +
          `refused, and its tracking links would break; wait until ${iso(since + after)}, or give --after 0s`,
      );
    }
    if ((await reseal(context)) > 0) await pause(resealDelayMs);
    const { closed } = await countSealed(await db(), createSeal(fixedSecrets(current)).opens);
    if (closed > 0)
      throw new Failure(
        `${closed} keys in the database are not encrypted with the current secret; nothing was retired`,
      );
    writeSecrets(file, [current]);
    const retired = others.map(fingerprint);
    out.print({ retired }, { fields: { retired: retired.join(' ') } });
    out.warn(`tracking links and return paths of mail sent before ${iso(since)} are no longer valid`);
  } finally {
    await unlock();
  }
}

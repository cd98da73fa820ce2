/** `postern key`: API keys. The key itself is printed once, by the command that makes it. */
import type { Command } from 'commander';
import { newKey } from '../accounts/keys.ts';
import { iso } from '../clock.ts';
import { findKey, insertKey, type KeyRecord, listKeys, revokeKey } from '../db/keys.ts';
import type { Db } from '../db/open.ts';
import { domainScopes, name, scopes } from './arguments.ts';
import type { Context } from './context.ts';
import { Failure } from './failure.ts';
import { theKey, theOrganization } from './lookup.ts';
import type { Output } from './output.ts';

interface CreateOptions {
  org: string;
  label: string;
  scope: string[];
  domain?: string[];
}

export function keyCommands(program: Command, { db, out, now }: Context): void {
  const key = program.command('key').description('API keys of an organization.');

  key
    .command('create')
    .description('Make an API key; it is shown this once.')
    .requiredOption('--org <ORG>', 'id or name of the organization')
    .requiredOption('--label <L>', 'what it is for', name)
    .requiredOption('--scope <S>', 'email:send, email:read, full_access or domain_scope:DOMAIN', scopes)
    .option('--domain <D>', 'restrict it to senders of this domain: short for domain_scope:D', domainScopes)
    .action(async ({ org, label, scope, domain = [] }: CreateOptions) => {
      const { id: orgId } = await theOrganization(await db(), org);
      const owner = { orgId, label, scopes: [...new Set([...scope, ...domain])] };
      printKey(out, await makeKey(await db(), owner, now()));
    });

  key
    .command('list')
    .description("List an organization's keys.")
    .requiredOption('--org <ORG>', 'id or name of the organization')
    .action(async ({ org }: { org: string }) => {
      const { id } = await theOrganization(await db(), org);
      printKeys(out, await listKeys(await db(), id));
    });

  key
    .command('revoke')
    .description('End a key at once.')
    .argument('<ID>', 'id of the key')
    .action(async (id: string) => {
      const found = await theKey(await db(), id);
      await revoke(await db(), found, now());
      const { revokedAt } = (await findKey(await db(), found.id))!;
      const document = { id: found.id, label: found.label, revokedAt: iso(revokedAt!) };
      out.print(document, {
        facts: [
          ['id', found.id],
          ['label', found.label],
          ['revoked', { time: revokedAt }],
        ],
      });
    });

  key
    .command('rotate')
    .description('Replace a key by a new one with the same label and scopes; the old one ends at once.')
    .argument('<ID>', 'id of the key')
    .action(async (id: string) => {
      const found = await theKey(await db(), id);
      const made = await (await db()).transaction(async (trx) => {
        await revoke(trx, found, now());
        return makeKey(trx, found, now());
      });
      printKey(out, made);
    });
}

interface MadeKey {
  id: string;
  key: string;
  scopes: string[];
}

async function makeKey(
  db: Db,
  owner: Pick<KeyRecord, 'orgId' | 'label' | 'scopes'>,
  now: number,
): Promise<MadeKey> {
  const { key, hash, hint } = newKey();
  const { orgId, label, scopes: granted } = owner;
  const id = await insertKey(db, { orgId, label, scopes: granted, hash, hint }, now);
  return { id, key, scopes: granted };
}

async function revoke(db: Db, key: KeyRecord, now: number): Promise<void> {
  if (await revokeKey(db, key.id, now)) return;
  const revokedAt = key.revokedAt === null ? 'just now' : iso(key.revokedAt);
  throw new Failure(`the key ${key.id} (${key.label}) was revoked already, ${revokedAt}`);
}

function printKey(out: Output, made: MadeKey): void {
  out.print(made, {
    facts: [
      ['id', made.id],
      ['key', made.key],
      ['scopes', made.scopes.join(' ')],
    ],
  });
  out.note('the key is shown this once; keep it where your application finds it');
  if (made.scopes.every((scope) => scope.startsWith('domain_scope:'))) {
    out.warn('this key grants nothing: a domain only restricts; add --scope email:send to let it send');
  }
}

function printKeys(out: Output, keys: KeyRecord[]): void {
  const documents = keys.map(({ id, label, hint, scopes: granted, createdAt, revokedAt }) => ({
    ...{ id, label, hint, scopes: granted },
    createdAt: iso(createdAt),
    revokedAt: revokedAt === null ? null : iso(revokedAt),
  }));
  out.print(documents, {
    head: ['ID', 'STATUS', 'KEY', 'CREATED', 'LABEL', 'SCOPES'],
    rows: keys.map((key) => [
      key.id,
      { state: key.revokedAt === null ? 'active' : 'revoked' },
      `${key.hint}…`,
      { time: key.createdAt },
      key.label,
      key.scopes.join(' '),
    ]),
    empty: 'There is no key yet; `postern key create` makes one.',
  });
}

/** `postern key`: API keys. The key itself is printed once, by the command that makes it. */
import type { Command } from 'commander';
import { type MadeKey, makeKey, rotateKey } from '../accounts/issue.ts';
import { iso } from '../clock.ts';
import { findKey, type KeyRecord, listKeys, revokeKey } from '../db/keys.ts';
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
      if (!(await revokeKey(await db(), found.id, now()))) throw revokedBefore(found);
      const { revokedAt } = (await findKey(await db(), found.id, null))!;
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
      const made = await rotateKey(await db(), found, now());
      if (!made) throw revokedBefore(found);
      printKey(out, made);
    });
}

function revokedBefore(key: KeyRecord): Failure {
  const revokedAt = key.revokedAt === null ? 'just now' : iso(key.revokedAt);
  return new Failure(`the key ${key.id} (${key.label}) was revoked already, ${revokedAt}`);
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

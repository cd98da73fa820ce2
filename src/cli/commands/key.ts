/** `postern key`: API keys. The key itself is printed once, by the command that makes it. */
import type { Command } from 'commander';
import { type MadeKey, makeKey, rotateKey } from '../../accounts/create-key.ts';
import { iso, isoOrNull } from '../../base/clock.ts';
import { findKey, type KeyRecord, listKeys, revokeKey } from '../../db/accounts/keys.ts';
import { domainScopes, name, scopes, timeSpan } from '../args/arguments.ts';
import { requireKey, requireOrganization } from '../args/lookup.ts';
import type { CommandContext } from '../command-context.ts';
import { Failure } from '../failure.ts';
import type { Cell, Output } from '../render/output.ts';

interface CreateOptions {
  org: string;
  label: string;
  scope: string[];
  domain?: string[];
}

export function keyCommands(program: Command, { db, out, now }: CommandContext): void {
  const key = program.command('key').description('API keys of an organization.');

  key
    .command('create')
    .description('Make an API key; it is shown this once.')
    .requiredOption('--org <ORG>', 'id or name of the organization')
    .requiredOption('--label <L>', 'what it is for', name)
    .requiredOption('--scope <S>', 'email:send, email:read, full_access or domain_scope:DOMAIN', scopes)
    .option('--domain <D>', 'restrict it to senders of this domain: short for domain_scope:D', domainScopes)
    .action(async ({ org, label, scope, domain = [] }: CreateOptions) => {
      const { id: orgId } = await requireOrganization(await db(), org);
      const owner = { orgId, label, scopes: [...new Set([...scope, ...domain])] };
      printKey(out, await makeKey(await db(), owner, now()));
    });

  key
    .command('list')
    .description("List an organization's keys.")
    .requiredOption('--org <ORG>', 'id or name of the organization')
    .action(async ({ org }: { org: string }) => {
      const { id } = await requireOrganization(await db(), org);
      printKeys(out, await listKeys(await db(), id), now());
    });

  key
    .command('revoke')
    .description('End a key at once.')
    .argument('<ID>', 'id of the key')
    .action(async (id: string) => {
      const found = await requireKey(await db(), id);
      if (!(await revokeKey(await db(), found.id, now()))) throw revokedBefore(found, now());
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
    .description('Replace a key by a new one with the same label and scopes.')
    .argument('<ID>', 'id of the key')
    .option('--grace <TIME>', 'how long the old one is good yet, such as 24h; else it ends at once', timeSpan)
    .action(async (id: string, { grace = 0 }: { grace?: number }) => {
      const found = await requireKey(await db(), id);
      const rotatedAt = now();
      const made = await rotateKey(await db(), found, rotatedAt, grace);
      if (!made) throw revokedBefore(found, rotatedAt);
      printKey(out, made, grace > 0 ? rotatedAt + grace : null);
    });
}

function revokedBefore(key: KeyRecord, now: number): Failure {
  if (key.revokedAt === null && key.endsAt !== null) {
    const advice = key.endsAt > now ? '; `postern key revoke` ends it at once' : '';
    return new Failure(
      `the key ${key.id} (${key.label}) was rotated already, and ends ${iso(key.endsAt)}${advice}`,
    );
  }
  const revokedAt = key.revokedAt === null ? 'just now' : iso(key.revokedAt);
  return new Failure(`the key ${key.id} (${key.label}) was revoked already, ${revokedAt}`);
}

function printKey(out: Output, made: MadeKey, oldUntil: number | null = null): void {
  const document = { ...made, ...(oldUntil !== null && { oldKeyUntil: iso(oldUntil) }) };
  out.print(document, {
    facts: [
      ['id', made.id],
      ['key', made.key],
      ['scopes', made.scopes.join(' ')],
      ...(oldUntil === null ? [] : [['the old one ends', { time: oldUntil }] as [string, Cell]]),
    ],
  });
  out.note('the key is shown this once; keep it where your application finds it');
  if (made.scopes.every((scope) => scope.startsWith('domain_scope:'))) {
    out.warn('this key grants nothing: a domain only restricts; add --scope email:send to let it send');
  }
}

function printKeys(out: Output, keys: KeyRecord[], now: number): void {
  const documents = keys.map(({ id, label, hint, scopes: granted, createdAt, revokedAt, endsAt }) => ({
    ...{ id, label, hint, scopes: granted },
    createdAt: iso(createdAt),
    revokedAt: isoOrNull(revokedAt),
    endsAt: isoOrNull(endsAt),
  }));
  out.print(documents, {
    head: ['ID', 'STATUS', 'KEY', 'CREATED', 'LABEL', 'SCOPES'],
    rows: keys.map((key) => [
      key.id,
      { state: stateOf(key, now) },
      `${key.hint}…`,
      { time: key.createdAt },
      key.label,
      key.scopes.join(' '),
    ]),
    empty: 'There is no key yet; `postern key create` makes one.',
  });
}

function stateOf({ revokedAt, endsAt }: KeyRecord, now: number): string {
  if (revokedAt !== null) return 'revoked';
  if (endsAt === null) return 'active';
  return endsAt > now ? 'ending' : 'ended';
}

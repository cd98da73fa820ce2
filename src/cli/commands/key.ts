/** `postern key`: API keys. The key itself is printed once, by the command that creates it. */
import { type Command, Option } from 'commander';
import { keyDocument, type MadeKey, makeKey, rotateKey } from '#accounts/create-key.ts';
import { findKey, type KeyRecord, listKeys, revokeKey } from '#accounts/rows/keys.ts';
import { domainScopes, name, scopes as scopesArgument, spanOption, timeSpan } from '#cli/args/arguments.ts';
import { addConsent, type Consent, isWanted } from '#cli/args/consent.ts';
import { requireKey, requireOwner, withOwner } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { streamName } from '#cli/commands/stream/stream-commands.ts';
import { asFailure, Failure } from '#cli/failure.ts';
import type { Output } from '#cli/render/output.ts';
import { iso } from '#platform/base/clock.ts';

interface CreateOptions {
  org?: string;
  label: string;
  scope: string[];
  domain?: string[];
  strict?: boolean;
  test?: boolean;
  stream?: string;
}

interface RotateOptions {
  overlap: number;
  now?: boolean;
  grace?: number;
}

export function keyCommands(program: Command, context: CommandContext): void {
  const { db, out, now } = context;
  const key = program.command('key').description('Manage the API keys of an organization.');

  withOwner(key.command('create'))
    .description('Create an API key; it is shown only once.')
    .requiredOption('--label <L>', 'what the key is used for', name)
    .requiredOption(
      '--scope <S>',
      'email:send, email:read, received:read, full_access or domain_scope:DOMAIN',
      scopesArgument,
    )
    .option(
      '--domain <D>',
      'restrict the key to senders of this domain; the same as --scope domain_scope:D',
      domainScopes,
    )
    .option(
      '--strict',
      'refuse sends with unknown members instead of ignoring those members; the default with --test',
    )
    .option('--no-strict', 'ignore unknown members, with --test, too')
    .option(
      '--test',
      'what the key sends is test mail: same checks and answers, but it goes to the inbox in the dashboard and nowhere else',
    )
    .option('--stream <NAME>', 'stream of mail that names none', streamName)
    .action(async ({ org, label, scope, domain = [], strict, test, stream }: CreateOptions) => {
      const { id: orgId } = await requireOwner(context, org);
      const owner = { orgId, label, scopes: [...new Set([...scope, ...domain])], strict, test, stream };
      printKey(out, await makeKey(await db(), owner, now()).catch(asFailure));
    });

  withOwner(key.command('list'))
    .description("List an organization's keys.")
    .action(async ({ org }: { org?: string }) => {
      const { id } = await requireOwner(context, org);
      printKeys(out, await listKeys(await db(), id), now());
    });

  addConsent(
    key.command('revoke').description('Revoke a key at once.').argument('<ID>', 'id of the key, or its end'),
  ).action((id: string, consent: Consent) => revoke(context, id, consent));

  key
    .command('rotate')
    .description('Replace a key with a new one that has the same label, scopes and options.')
    .argument('<ID>', 'id of the key, or its end')
    .addOption(spanOption('--overlap <TIME>', 'how long the old key stays valid', '24h'))
    .addOption(new Option('--now', 'revoke the old key at once, because it has leaked').conflicts('overlap'))
    // The name of --overlap until 0.9.
    .addOption(new Option('--grace <TIME>').argParser(timeSpan).hideHelp())
    .action(async (id: string, { overlap, now: atOnce, grace }: RotateOptions) => {
      const found = await requireKey(await db(), id);
      const { oldKeyUntil, ...made } = await rotateKey(
        await db(),
        found,
        now(),
        atOnce ? 0 : (grace ?? overlap),
      );
      printKey(out, made, oldKeyUntil);
    });
}

async function revoke(context: CommandContext, idOrEnd: string, consent: Consent): Promise<void> {
  const { db, out, now } = context;
  const found = await requireKey(await db(), idOrEnd);
  const named = `the key ${found.id} (${found.label})`;
  const alreadyRevoked = new Failure(`${named} has already been revoked`);
  if (found.revokedAt !== null) throw alreadyRevoked;
  const shown = { id: found.id, label: found.label };
  const effect = {
    question: `revoke ${named}, so that its applications send no more`,
    fields: shown,
    document: shown,
  };
  if (!(await isWanted(context, effect, consent))) return;
  if (!(await revokeKey(await db(), found.id, now()))) throw alreadyRevoked;
  const { label, revokedAt } = (await findKey(await db(), found.id, null))!;
  const fields = { id: found.id, label, revoked: { time: revokedAt } };
  out.print({ id: found.id, label, revokedAt: iso(revokedAt!) }, { fields });
}

function printKey(out: Output, made: MadeKey, oldUntil: number | null = null): void {
  const { id, key, scopes, strict, test, stream } = made;
  const document = {
    id,
    key,
    scopes,
    strict,
    test,
    ...(stream !== undefined && { stream }),
    ...(oldUntil !== null && { oldKeyUntil: iso(oldUntil) }),
  };
  const names = optionNames({ strict, isTest: test });
  const options = names.length > 0 && { options: names.join(' ') };
  const old = oldUntil !== null && { 'the old one ends': { time: oldUntil } };
  out.print(document, {
    fields: { id, key, scopes: scopes.join(' '), ...options, ...(stream && { stream }), ...old },
  });
  if (test)
    out.note('what this key sends is test mail: it goes to the inbox in the dashboard and nowhere else');
  out.note('the key is shown only this time; store it where your application can read it');
  if (scopes.every((scope) => scope.startsWith('domain_scope:'))) {
    out.warn(
      'this key cannot do anything: a domain scope only restricts; add --scope email:send to allow sending',
    );
  }
}

function printKeys(out: Output, keys: KeyRecord[], now: number): void {
  out.print(keys.map(keyDocument), {
    head: ['ID', 'STATUS', 'KEY', 'CREATED', 'LABEL', 'SCOPES'],
    rows: keys.map((key) => [
      { id: key.id },
      { state: stateOf(key, now) },
      `${key.hint}…`,
      { time: key.createdAt, past: true },
      key.label,
      [...key.scopes, ...optionNames(key).map((name) => `(${name})`)].join(' '),
    ]),
    empty: 'There is no key yet; `postern key create` creates one.',
  });
}

function optionNames({
  strict,
  isTest,
  stream,
}: Pick<KeyRecord, 'strict' | 'isTest'> & { stream?: string | null }): string[] {
  return [
    ...(strict ? ['strict'] : []),
    ...(isTest ? ['test'] : []),
    ...(stream ? [`stream ${stream}`] : []),
  ];
}

function stateOf({ revokedAt, endsAt }: KeyRecord, now: number): string {
  if (revokedAt !== null) return 'revoked';
  if (endsAt === null) return 'active';
  return endsAt > now ? 'ending' : 'ended';
}

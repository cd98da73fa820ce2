/** `postern org`: the organizations that send, with their quotas and limits. */
import type { Command } from 'commander';
import { makeOrganization } from '#accounts/create-organization.ts';
import {
  listOrganizations,
  NameTaken,
  type Organization,
  renameOrganization,
  requireSecondFactor,
  setAutoPause,
  setLimits,
  setOrganizationTls,
} from '#accounts/rows/organizations.ts';
import { pauseOrganization, resumeOrganization } from '#accounts/rows/pauses.ts';
import {
  choice,
  credits,
  limit,
  name,
  type OrUnlimited,
  onOff,
  pool,
  quota,
  reason,
  tlsArgument,
  tlsFloor,
  tlsIs,
  toLimit,
} from '#cli/args/arguments.ts';
import { requireOrganization } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { organizationDocument, printOrganization, quotaDocument } from '#cli/render/org-view.ts';
import type { Cell } from '#cli/render/output.ts';
import { assignPool, readPools } from '#mail/queue/rows/ip-pools.ts';
import { type PauseMode, pauseModes } from '#mail/record/auto-pause/pause-rules.ts';
import { iso } from '#platform/base/clock.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { TlsFloor } from '#platform/values/glossary.ts';
import { defaultPool } from '#platform/values/ip-pool.ts';
import { removeCommand } from './org-remove.ts';

export function orgCommands(program: Command, context: CommandContext): void {
  const org = program
    .command('org')
    .description('Manage organizations: the senders, with their quotas and limits.');
  const named = (command: string, description: string) =>
    org.command(command).description(description).argument('<ORG>', 'id or name');
  const changes = changeOf(context);

  org
    .command('create')
    .description('Create an organization; without --quota and --wallet it may send without limit.')
    .requiredOption('--name <NAME>', 'name of the organization', name)
    .option('--quota <N|unlimited>', 'credits per month; each recipient costs one', quota)
    .option('--wallet <N>', 'credits that do not expire, used once the quota is used up', credits)
    .action((options: CreateOptions) => create(context, options));

  org
    .command('list')
    .description('List the organizations.')
    .action(() => list(context));

  named('show', 'Show an organization with its quota and limits.').action(changes(async () => {}));

  named('rename', 'Give an organization another name.')
    .argument('<NAME>', 'the new name', name)
    .action(changes((db, { id }, newName: string) => renameOrganization(db, id, newName)));

  settingCommands(named, context);
  removeCommand(
    named('remove', 'Delete an organization with all its data, once none of its mail is being sent.'),
    context,
  );
}

const autoPauseMode = choice('a mode', [...pauseModes, 'default']);

type Named = (command: string, description: string) => Command;

function settingCommands(named: Named, context: CommandContext): void {
  const changes = changeOf(context);

  // Without any option it only prints them.
  named('limits', 'Set the request and sending limits of an organization; a day begins at midnight UTC.')
    .option('--per-second <N>', 'API requests per second, or unlimited', limit)
    .option('--per-day <N>', 'API requests per day, or unlimited', limit)
    .option('--emails-per-day <N>', 'recipients per day, or unlimited', limit)
    .action(changes((db, { id }, options: LimitOptions) => changeLimits(db, id, options)));

  named('tls', 'Set the minimum TLS protection for all mail of an organization; a domain may require more.')
    .argument(tlsArgument, tlsIs, tlsFloor)
    .action(changes((db, { id }, tls: TlsFloor) => setOrganizationTls(db, id, tls)));

  named('auto-pause', 'Set what happens if mail is complained about or bounces too often.')
    .argument('<off|warn|hold|default>', 'default: as POSTERN_AUTO_PAUSE says', autoPauseMode)
    .action(
      changes((db, { id }, mode: PauseMode | 'default') =>
        setAutoPause(db, id, mode === 'default' ? null : mode),
      ),
    );

  named(
    'two-factor',
    'Require two-factor authentication of all users of an organization; API keys are not affected.',
  )
    .argument('<on|off>', 'on: users without it must set it up at their next page', onOff)
    .action(changes((db, { id }, state: string) => requireSecondFactor(db, id, state === 'on')));

  named('pause', 'Pause an organization at once: reject its API keys and sign-ins, and hold its mail.')
    .requiredOption('--reason <R>', 'reason, shown to the API clients and users of the organization', reason)
    .action(
      changes((db, { id }, options: { reason: string }) =>
        pauseOrganization(db, id, { since: context.now(), reason: options.reason }),
      ),
    );

  named(
    'resume',
    'Resume a paused organization; the expiry of its held mail is extended by the length of the pause.',
  )
    .requiredOption('--reason <R>', 'why', reason)
    .action((idOrName: string, options: { reason: string }) => resume(context, idOrName, options.reason));

  named(
    'pool',
    'Assign an organization to an IP pool: its mail is sent only from the addresses of that pool.',
  )
    .argument('[NAME]', 'name of the pool in POSTERN_MTA_SOURCES', pool)
    .option('--none', 'remove the assignment: send from the addresses without a pool')
    .action(async (idOrName: string, poolName: string | undefined, { none = false }, command: Command) => {
      if ((poolName === undefined) !== none)
        command.error('error: give either the NAME of a pool or --none', { exitCode: 2 });
      await changes((db, { id }) => assignPool(db, id, poolName ?? defaultPool))(idOrName);
      await warnOfMissingPool(context, poolName ?? defaultPool);
    });
}

type Change<Args extends unknown[]> = (db: Db, org: Organization, ...args: Args) => Promise<unknown>;

/** Makes an action of a change to the organization that is named: prints the organization as it is then. */
function changeOf(context: CommandContext) {
  return <Args extends unknown[]>(change: Change<Args>) =>
    async (idOrName: string, ...args: Args): Promise<void> => {
      const db = await context.db();
      const org = await requireOrganization(db, idOrName);
      await change(db, org, ...args).catch(asFailure);
      printOrganization(context, await requireOrganization(db, org.id));
    };
}

interface CreateOptions {
  name: string;
  quota?: OrUnlimited;
  wallet?: number;
}

async function create(context: CommandContext, options: CreateOptions): Promise<void> {
  const quotaLimit = toLimit(options.quota ?? (options.wallet === undefined ? 'unlimited' : 0));
  const wanted = { ...options, quota: quotaLimit };
  const made = await makeOrganization(await context.db(), wanted, context.now()).catch(asFailure);
  printOrganization(context, made);
}

function asFailure(error: unknown): never {
  throw error instanceof NameTaken ? new Failure(error.message) : error;
}

async function list({ db, out, now }: CommandContext): Promise<void> {
  const organizations = await listOrganizations(await db());
  out.print(
    organizations.map((each) => organizationDocument(each, now())),
    {
      head: ['ID', 'QUOTA', 'USED', 'LEFT', 'WALLET', 'CREATED', 'PAUSED', 'NAME'],
      rows: organizations.map((each) => row(each, now())),
      empty: 'There is no organization yet; `postern org create --name NAME` creates one.',
    },
  );
}

function row(org: Organization, now: number): Cell[] {
  const { limit: max, used, remaining } = quotaDocument(org, now);
  const [created, paused] = [
    { time: org.createdAt, past: true },
    { time: org.pause?.since ?? null, past: true },
  ];
  return [org.id, max, used, remaining, org.wallet, created, paused, org.name];
}

interface LimitOptions {
  perSecond?: OrUnlimited;
  perDay?: OrUnlimited;
  emailsPerDay?: OrUnlimited;
}

async function changeLimits(db: Db, id: string, options: LimitOptions): Promise<void> {
  if (Object.keys(options).length === 0) return;
  await setLimits(db, id, {
    requestsPerSecond: toLimit(options.perSecond),
    requestsPerDay: toLimit(options.perDay),
    emailsPerDay: toLimit(options.emailsPerDay),
  });
}

async function resume({ db, out, now }: CommandContext, idOrName: string, why: string): Promise<void> {
  const { id, name: orgName, pause: paused } = await requireOrganization(await db(), idOrName);
  if (!paused)
    throw new Failure(`${orgName} is not paused; \`postern org list\` shows which organizations are`);
  const onProgress = (count: number) => out.progress(`${count} mails made due again so far`);
  const waiting = await resumeOrganization(await db(), id, paused, now(), onProgress);
  const changed = await requireOrganization(await db(), id);
  out.print(
    {
      ...organizationDocument(changed, now()),
      resumed: { reason: why, pausedSince: iso(paused.since), waiting },
    },
    { fields: { resumed: orgName, 'mail that waited': waiting } },
  );
}

async function warnOfMissingPool({ db, out, now }: CommandContext, poolName: string): Promise<void> {
  const available = await readPools(await db(), now());
  if (available.has(poolName) || (poolName === defaultPool && available.size === 0)) return;
  const others =
    available.size === 0
      ? 'no node is running'
      : `the running nodes have ${[...available].sort().join(', ')}`;
  out.warn(
    `no running node has a source address of the pool ${poolName} (${others}): the mail waits until a node has one (POSTERN_MTA_SOURCES)`,
  );
}

/** `postern org`: the organizations that send, their quota and their limits. */
import type { Command } from 'commander';
import { makeOrganization } from '../../accounts/create-organization.ts';
import { iso } from '../../base/clock.ts';
import { quotaState } from '../../db/accept/credit-ledger.ts';
import {
  findOrganization,
  type Limits,
  listOrganizations,
  NameTaken,
  type Organization,
  setLimits,
  setOrganizationTls,
} from '../../db/accounts/organizations.ts';
import { pauseOrganization, resumeOrganization } from '../../db/accounts/pauses.ts';
import type { Db } from '../../db/engine/open.ts';
import { assignPool, readPools } from '../../db/queue/ip-pools.ts';
import type { TlsFloor } from '../../glossary.ts';
import { defaultPool } from '../../mail/ip-pool.ts';
import {
  credits,
  limit,
  name,
  type OrUnlimited,
  pool,
  quota,
  reason,
  tlsArgument,
  tlsFloor,
  tlsIs,
  toLimit,
} from '../args/arguments.ts';
import { requireOrganization } from '../args/lookup.ts';
import type { CommandContext } from '../command-context.ts';
import { Failure } from '../failure.ts';
import type { Block, Cell } from '../render/output.ts';

export function orgCommands(program: Command, context: CommandContext): void {
  const { db, out, now } = context;
  const org = program
    .command('org')
    .description('Manage organizations: the senders, with their quotas and limits.');

  org
    .command('create')
    .description('Create an organization; without --quota and --wallet it may send without limit.')
    .requiredOption('--name <NAME>', 'name of the organization', name)
    .option('--quota <N|unlimited>', 'credits per month; each recipient costs one', quota)
    .option('--wallet <N>', 'credits that do not expire, used once the quota is used up', credits)
    .action(async (options: { name: string; quota?: OrUnlimited; wallet?: number }) => {
      const made = await create(await db(), options, now());
      out.print(organizationDocument(made, now()), organizationFacts(made, now()));
    });

  org
    .command('list')
    .description('List the organizations.')
    .action(async () => {
      const organizations = await listOrganizations(await db());
      out.print(
        organizations.map((each) => organizationDocument(each, now())),
        {
          head: ['ID', 'QUOTA', 'USED', 'LEFT', 'WALLET', 'CREATED', 'PAUSED', 'NAME'],
          rows: organizations.map((each) => organizationRow(each, now())),
          empty: 'There is no organization yet; `postern org create --name NAME` creates one.',
        },
      );
    });

  org
    .command('show')
    .description('Show an organization with its quota and limits.')
    .argument('<ORG>', 'id or name')
    .action(async (idOrName: string) => {
      const found = await requireOrganization(await db(), idOrName);
      out.print(organizationDocument(found, now()), organizationFacts(found, now()));
    });

  org
    .command('limits')
    .description('Set the request and sending limits of an organization; a day begins at midnight UTC.')
    .argument('<ORG>', 'id or name')
    .option('--per-second <N>', 'API requests per second, or unlimited', limit)
    .option('--per-day <N>', 'API requests per day, or unlimited', limit)
    .option('--emails-per-day <N>', 'recipients per day, or unlimited', limit)
    .action(async (idOrName: string, options: LimitOptions) => {
      const found = await requireOrganization(await db(), idOrName);
      const changed = await changeLimits(await db(), found, options);
      out.print(organizationDocument(changed, now()), organizationFacts(changed, now()));
    });

  org
    .command('tls')
    .description('Set the minimum TLS protection for all mail of an organization; a domain may require more.')
    .argument('<ORG>', 'id or name')
    .argument(tlsArgument, tlsIs, tlsFloor)
    .action(async (idOrName: string, tls: TlsFloor) => {
      const found = await requireOrganization(await db(), idOrName);
      await setOrganizationTls(await db(), found.id, tls);
      const changed = { ...found, tls };
      out.print(organizationDocument(changed, now()), organizationFacts(changed, now()));
    });

  pauseCommands(org, context);

  org
    .command('pool')
    .description(
      'Assign an organization to an IP pool: its mail is sent only from the addresses of that pool.',
    )
    .argument('<ORG>', 'id or name')
    .argument('[NAME]', 'name of the pool in POSTERN_MTA_SOURCES', pool)
    .option('--none', 'remove the assignment: send from the addresses without a pool')
    .action(async (idOrName: string, name: string | undefined, { none = false }, command: Command) => {
      if ((name === undefined) !== none)
        command.error('error: give either the NAME of a pool or --none', { exitCode: 2 });
      await pin(context, idOrName, name ?? defaultPool);
    });
}

function pauseCommands(org: Command, context: CommandContext): void {
  const reasonIs = 'reason, shown to the API clients and users of the organization';
  org
    .command('pause')
    .description('Pause an organization at once: reject its API keys and sign-ins, and hold its mail.')
    .argument('<ORG>', 'id or name')
    .requiredOption('--reason <R>', reasonIs, reason)
    .action(async (idOrName: string, options: { reason: string }) => {
      const { db, out, now } = context;
      const { id } = await requireOrganization(await db(), idOrName);
      await pauseOrganization(await db(), id, { since: now(), reason: options.reason });
      const changed = (await findOrganization(await db(), id))!;
      out.print(organizationDocument(changed, now()), organizationFacts(changed, now()));
    });

  org
    .command('resume')
    .description(
      'Resume a paused organization; the expiry of its held mail is extended by the length of the pause.',
    )
    .argument('<ORG>', 'id or name')
    .requiredOption('--reason <R>', 'why', reason)
    .action((idOrName: string, options: { reason: string }) => resume(context, idOrName, options.reason));
}

async function resume({ db, out, now }: CommandContext, idOrName: string, why: string): Promise<void> {
  const { id, name: called, pause } = await requireOrganization(await db(), idOrName);
  if (!pause)
    throw new Failure(`${called} is not paused; \`postern org list\` shows which organizations are`);
  const onProgress = (count: number) => out.progress(`${count} mails made due again so far`);
  const waiting = await resumeOrganization(await db(), id, pause, now(), onProgress).finally(() =>
    out.progress(''),
  );
  const changed = (await findOrganization(await db(), id))!;
  out.print(
    {
      ...organizationDocument(changed, now()),
      resumed: { reason: why, pausedSince: iso(pause.since), waiting },
    },
    {
      facts: [
        ['resumed', called],
        ['mail that waited', waiting],
      ],
    },
  );
}

async function pin({ db, out, now }: CommandContext, idOrName: string, name: string): Promise<void> {
  const { id } = await requireOrganization(await db(), idOrName);
  await assignPool(await db(), id, name);
  const changed = (await findOrganization(await db(), id))!;
  out.print(organizationDocument(changed, now()), organizationFacts(changed, now()));
  const there = await readPools(await db(), now());
  if (there.has(name) || (name === defaultPool && there.size === 0)) return;
  const others =
    there.size === 0 ? 'no node is running' : `the running nodes have ${[...there].sort().join(', ')}`;
  out.warn(
    `no running node has a source address of the pool ${name} (${others}): the mail waits until a node has one (POSTERN_MTA_SOURCES)`,
  );
}

async function create(
  db: Db,
  options: { name: string; quota?: OrUnlimited; wallet?: number },
  now: number,
): Promise<Organization> {
  const quotaLimit = toLimit(options.quota ?? (options.wallet === undefined ? 'unlimited' : 0));
  return makeOrganization(db, { ...options, quota: quotaLimit }, now).catch((error) => {
    throw error instanceof NameTaken ? new Failure(error.message) : error;
  });
}

interface LimitOptions {
  perSecond?: OrUnlimited;
  perDay?: OrUnlimited;
  emailsPerDay?: OrUnlimited;
}

/** Without any option it only shows them. */
async function changeLimits(db: Db, org: Organization, options: LimitOptions): Promise<Organization> {
  const limits: Limits = {
    requestsPerSecond: toLimit(options.perSecond),
    requestsPerDay: toLimit(options.perDay),
    emailsPerDay: toLimit(options.emailsPerDay),
  };
  if (Object.values(limits).every((value) => value === undefined)) return org;
  await setLimits(db, org.id, limits);
  return (await findOrganization(db, org.id))!;
}

export function organizationDocument(org: Organization, now: number) {
  return {
    id: org.id,
    name: org.name,
    quota: quotaDocument(org, now),
    wallet: org.wallet,
    limits: {
      perSecond: orUnlimited(org.requestsPerSecond),
      perDay: orUnlimited(org.requestsPerDay),
      emailsPerDay: orUnlimited(org.emailsPerDay),
    },
    tls: org.tls,
    pool: org.pool,
    paused: org.pause && { since: iso(org.pause.since), reason: org.pause.reason },
    createdAt: iso(org.createdAt),
  };
}

export function quotaDocument(org: Organization, now: number) {
  const { limit, used, remaining, renewsAt } = quotaState(org, now);
  return { limit: orUnlimited(limit), used, remaining: orUnlimited(remaining), renewsAt: iso(renewsAt) };
}

export function orUnlimited(value: number | null): number | 'unlimited' {
  return value ?? 'unlimited';
}

function organizationRow(org: Organization, now: number): Cell[] {
  const { limit: max, used, remaining } = quotaDocument(org, now);
  return [
    org.id,
    max,
    used,
    remaining,
    org.wallet,
    { time: org.createdAt },
    { time: org.pause?.since ?? null },
    org.name,
  ];
}

export function quotaFacts(org: Organization, now: number): [string, Cell][] {
  const { limit: max, used, remaining, renewsAt } = quotaState(org, now);
  return [
    ['quota', orUnlimited(max)],
    ['used', used],
    ['left', orUnlimited(remaining)],
    ['renews', { time: renewsAt }],
    ['wallet', org.wallet],
  ];
}

export function organizationFacts(org: Organization, now: number): Block {
  return {
    facts: [
      ['id', org.id],
      ['name', org.name],
      ...quotaFacts(org, now),
      ['requests a second', orUnlimited(org.requestsPerSecond)],
      ['requests a day', orUnlimited(org.requestsPerDay)],
      ['emails a day', orUnlimited(org.emailsPerDay)],
      ['TLS', org.tls],
      ['source pool', org.pool ?? `${defaultPool} (not assigned)`],
      ['created', { time: org.createdAt }],
      ...(org.pause
        ? ([
            ['paused', { time: org.pause.since }],
            ['reason', org.pause.reason],
          ] satisfies [string, Cell][])
        : []),
    ],
  };
}

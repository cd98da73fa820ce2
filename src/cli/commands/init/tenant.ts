/** The first organization, its domain, the operator of the dashboard, and a key. Existing ones are left as they are. */
import { makeKey } from '#accounts/create-key.ts';
import { makeOrganization } from '#accounts/create-organization.ts';
import { registerDomain } from '#accounts/domain-registration.ts';
import { invite } from '#accounts/people/people.ts';
import { type DomainRecord, findDomain, listSenderDomains } from '#accounts/rows/domains-table.ts';
import { listKeys } from '#accounts/rows/keys.ts';
import {
  findOrganization,
  findOrganizationByName,
  listOrganizations,
  type Organization,
} from '#accounts/rows/organizations.ts';
import { findUserByEmail } from '#accounts/rows/users.ts';
import { createSeal } from '#accounts/seal.ts';
import { ok } from '#operate/doctor/finding.ts';
import { iso } from '#platform/base/clock.ts';
import { shellWord } from '#platform/settings/shell-word.ts';
import type { SetUp } from './set-up.ts';
import type { Step } from './step.ts';

/** The organization that --org names, that has the domain, or that is the only one; null if there is none of these. */
export async function findOwner({ context, answers, organization }: SetUp): Promise<Organization | null> {
  const db = await context.db();
  if (organization !== null) return findOrganizationByName(db, organization);
  const [registered] = await listSenderDomains(db, answers.domain, 1);
  if (registered) return findOrganization(db, registered.orgId);
  const [only, ...others] = await listOrganizations(db);
  return only && others.length === 0 ? only : findOrganizationByName(db, answers.domain);
}

export async function findOwnDomain(setUp: SetUp): Promise<DomainRecord | null> {
  const owner = await findOwner(setUp);
  return owner && findDomain(await setUp.context.db(), owner.id, setUp.answers.domain);
}

const cure = '`postern doctor` and the log of the server say more';

export function organizationStep(setUp: SetUp, needs: Step[]): Step {
  const { context, answers, organization } = setUp;
  return {
    what: 'create the organization',
    needs,
    async isDone() {
      const owner = await findOwner(setUp);
      return owner && ok(owner.name);
    },
    async do() {
      const name = organization ?? answers.domain;
      await makeOrganization(await context.db(), { name }, context.now());
      return ok(name);
    },
    cure,
  };
}

export function domainStep(setUp: SetUp, needs: Step[]): Step {
  const { context, answers } = setUp;
  return {
    what: 'register the domain',
    needs,
    async isDone() {
      const found = await findOwnDomain(setUp);
      return found && ok(`${found.name}, ${found.status}`);
    },
    async do() {
      const { id: orgId } = (await findOwner(setUp))!;
      const terms = { seal: createSeal(context.secrets()), now: context.now() };
      const { name } = await registerDomain(await context.db(), { orgId, name: answers.domain }, terms);
      return ok(`${name}, with a DKIM key`);
    },
    cure,
  };
}

/** The link is only printed: anyone who has it can set the password. */
export function operatorStep(setUp: SetUp, needs: Step[]): Step {
  const { context, answers, shown } = setUp;
  const { email } = answers;
  return {
    what: 'invite the operator',
    needs,
    async isDone() {
      const user = await findUserByEmail(await context.db(), email);
      return user?.isOperator && user.passwordHash !== null ? ok(`${email} can sign in`) : null;
    },
    async do() {
      const person = { email, name: email, isOperator: true, member: null };
      const { link } = await invite(await context.db(), person, context.now());
      if (link === null) return ok(`${email} is an operator now`);
      const url = context.config().baseUrl + link.path;
      shown.operator = { email, url, expiresAt: iso(link.expiresAt) };
      return ok(`the link to set a password, once, until ${iso(link.expiresAt)}: ${url}`);
    },
    cure,
  };
}

export function keyStep(setUp: SetUp, needs: Step[]): Step {
  const { context, shown } = setUp;
  return {
    what: 'create an API key',
    needs,
    async isDone() {
      const owner = (await findOwner(setUp))!;
      const active = (await listKeys(await context.db(), owner.id)).find(
        ({ revokedAt }) => revokedAt === null,
      );
      const another = `postern key create --org ${shellWord(owner.name)} --label app --scope email:send`;
      return active ? ok(`${active.hint}… is there; \`${another}\` makes another`) : null;
    },
    async do() {
      const { id: orgId } = (await findOwner(setUp))!;
      const wanted = { orgId, label: 'init', scopes: ['email:send', 'email:read'] };
      const { id, key, scopes } = await makeKey(await context.db(), wanted, context.now());
      shown.key = { id, key, scopes };
      return ok(`${key} (shown only this time)`);
    },
    cure,
  };
}

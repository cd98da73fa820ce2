/** /api/public/suppressions: addresses that an organization sends no more email to. csv.ts has the list as CSV. */
import type { Context } from 'koa';
import { iso } from '../../base/clock.ts';
import {
  addSuppression,
  findSuppression,
  removeSuppression,
  type Suppression,
  searchSuppressions,
  suppressionOf,
} from '../../db/accounts/suppressions.ts';
import { compareKey, domainOf } from '../../mail/address.ts';
import { Refusal } from '../../mail/refusal.ts';
import { invalidLimit, jsonResponse, pathParameter } from '../endpoint.ts';
import {
  doneContent,
  exampleTime,
  invalidBody,
  jsonBody,
  type Management,
  managementEndpoints,
  notFound,
  readJson,
  requireFound,
} from '../management.ts';
import { readQuery } from '../query.ts';
import {
  cursorOf,
  newSuppression,
  type SuppressionOut,
  suppressionSchemas,
  suppressionsQuery,
} from './schema.ts';

const dora = { address: 'dora@example.org', reason: 'asked by phone', createdAt: exampleTime };
const parameters = [pathParameter('address', 'The address.', dora.address, 'idn-email')];
const errors = {
  BAD_REQUEST: {
    when: 'The address in the path is not an email address.',
    message: 'The address in the path is not an email address.',
  },
  NOT_FOUND: notFound('suppression'),
};

export const suppressionEndpoints = managementEndpoints('Suppressions', [
  {
    route: 'GET /suppressions',
    operationId: 'listSuppressions',
    summary: 'List suppressions',
    description: 'The suppressed addresses in alphabetical order.',
    query: suppressionsQuery,
    response: jsonResponse('A page of addresses.', suppressionSchemas.SuppressionsAnswer, 'One address', {
      success: true,
      suppressions: [dora],
      next: null,
    }),
    errors: { VALIDATION_ERROR: invalidLimit(1000) },
    respond: list,
  },
  {
    route: 'POST /suppressions',
    operationId: 'addSuppression',
    summary: 'Suppress an address',
    description: 'Adds an address to the suppression list: no email is sent to it.',
    body: jsonBody(newSuppression, 'An address', { address: dora.address, reason: dora.reason }),
    response: jsonResponse(
      'The address is on the list.',
      suppressionSchemas.SuppressionAddedAnswer,
      'Added',
      {
        success: true,
        added: true,
        suppression: dora,
      },
    ),
    errors: {
      VALIDATION_ERROR: {
        issues: [
          {
            code: 'custom',
            expected: 'an email address',
            received: 'string of 4 characters',
            path: ['address'],
            message: 'address: must be an email address',
          },
        ],
      },
      BAD_REQUEST: invalidBody,
    },
    respond: add,
  },
  {
    route: 'GET /suppressions/{address}',
    operationId: 'getSuppression',
    summary: 'Look up an address',
    description: 'Whether an address is suppressed, and why.',
    parameters,
    response: jsonResponse(
      'The address is suppressed.',
      suppressionSchemas.SuppressionAnswer,
      'A suppressed address',
      {
        success: true,
        suppression: dora,
      },
    ),
    errors,
    respond: find,
  },
  {
    route: 'DELETE /suppressions/{address}',
    operationId: 'removeSuppression',
    summary: 'Remove a suppression',
    description: 'Removes an address from the suppression list, so that email is sent to it again.',
    parameters,
    response: { description: 'The address is no longer suppressed.', content: doneContent },
    errors,
    respond: remove,
  },
]);

async function list(context: Context, orgId: string, { db }: Management): Promise<object> {
  const { search, after = null, limit } = readQuery(context, suppressionsQuery);
  // The keys that it is compared with are in the same form.
  const part = search?.trim().normalize('NFC').toLowerCase() ?? null;
  const { found, next } = await searchSuppressions(db, { orgId, part, after, limit });
  return { suppressions: found.map(present), next: next === null ? null : cursorOf(next) };
}

async function add(context: Context, orgId: string, { db, clock, eventSignal }: Management): Promise<object> {
  const { address, reason } = await readJson(context, newSuppression);
  const added = await addSuppression(db, suppressionOf(orgId, address, reason), clock.now());
  if (added) eventSignal.notify();
  const kept = requireFound(await findSuppression(db, orgId, compareKey(address)), 'suppression');
  return { added, suppression: present(kept) };
}

function addressKeyIn({ params: { address } }: Context): string {
  if (domainOf(address) !== null) return compareKey(address);
  throw new Refusal('BAD_REQUEST', 'The address in the path is not an email address.');
}

async function find(context: Context, orgId: string, { db }: Management): Promise<object> {
  return {
    suppression: present(
      requireFound(await findSuppression(db, orgId, addressKeyIn(context)), 'suppression'),
    ),
  };
}

async function remove(
  context: Context,
  orgId: string,
  { db, clock, eventSignal }: Management,
): Promise<object> {
  requireFound(
    (await removeSuppression(db, orgId, addressKeyIn(context), clock.now())) || null,
    'suppression',
  );
  eventSignal.notify();
  return {};
}

function present({ address, reason, createdAt }: Suppression): SuppressionOut {
  return { address, reason, createdAt: iso(createdAt) };
}

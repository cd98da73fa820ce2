/** /api/public/suppressions: addresses that get no email from an organization. csv.ts has the list as CSV. */

import type { Context } from 'koa';
import { requireStreamName } from '#accounts/manage-streams.ts';
import { findSuppression, ofAll, type SuppressionRecord } from '#accounts/rows/suppressions.ts';
import { searchList, suppressAddress, unsuppressAddress } from '#accounts/suppression-list.ts';
import { pathParameter } from '#front/api/endpoint.ts';
import { answer, doneAnswer, requireFound, resource } from '#front/api/management.ts';
import { noBody } from '#front/http/body-limits.ts';
import { readQuery } from '#front/http/query.ts';
import { iso } from '#platform/base/clock.ts';
import { compareKey, domainOf } from '#platform/values/address.ts';
import { hasHidden, trimBlanks } from '#platform/values/hidden-characters.ts';
import { storedStream } from '#platform/values/stream.ts';
import { cursorOf, listQuery, newSuppression, suppressionSchemas, suppressionsQuery } from './schema.ts';

const { SuppressionAddedAnswer, SuppressionAnswer, SuppressionsAnswer } = suppressionSchemas;

const suppressions = resource('Suppressions', {
  noun: 'suppression',
  parameter: pathParameter('address', 'The address.', 'dora@example.org', 'idn-email'),
  invalid: 'The address in the path is not an email address.',
  parse(given) {
    const address = trimBlanks(given);
    // Earlier versions accepted addresses with hidden characters; they can be removed.
    return domainOf(address) !== null || hasHidden(address) ? compareKey(address) : null;
  },
  find: (db, orgId, addressKey, _caller, context) =>
    findSuppression(db, orgId, addressKey, streamIn(context)),
});

export const suppressionEndpoints = [
  suppressions.collection({
    route: 'GET /suppressions',
    operationId: 'listSuppressions',
    summary: 'List suppressions',
    description: 'The suppressed addresses in alphabetical order.',
    query: suppressionsQuery,
    response: answer('A page of addresses.', SuppressionsAnswer),
    async respond({ db, orgId, query: { search = '', after = null, limit, stream } }) {
      const list = { orgId, stream: storedStream(stream) ?? undefined };
      const { found, next } = await searchList(db, search, { ...list, after, limit });
      return { suppressions: found.map(present), next: next === null ? null : cursorOf(next) };
    },
  }),
  suppressions.collection({
    route: 'POST /suppressions',
    operationId: 'addSuppression',
    summary: 'Suppress an address',
    description:
      'Adds an address to the suppression list: no email is sent to it, or with `stream`, none of that stream.',
    body: newSuppression,
    response: answer('The address is on the list.', SuppressionAddedAnswer),
    errors: {
      VALIDATION_ERROR: true,
    },
    async respond({ body: { address, reason, stream: given }, ...call }) {
      const stream = await requireStreamName(call.db, call.orgId, given);
      const added = await suppressAddress({ ...call, stream }, address, reason);
      const kept = await findSuppression(call.db, call.orgId, compareKey(address), stream ?? ofAll);
      return { added, suppression: present(requireFound(kept, 'suppression')) };
    },
  }),
  suppressions.item({
    route: 'GET /suppressions/{address}',
    operationId: 'getSuppression',
    summary: 'Look up an address',
    description: 'Whether an address is suppressed, and why.',
    query: listQuery,
    response: answer('The address is suppressed.', SuppressionAnswer),
    respond: async ({ found }) => ({ suppression: present(found) }),
  }),
  suppressions.item({
    route: 'DELETE /suppressions/{address}',
    body: noBody,
    operationId: 'removeSuppression',
    summary: 'Remove a suppression',
    description:
      'Removes an address from the suppression list, so that email is sent to it again. With `stream`, the person has subscribed to that again: links of earlier emails end the new subscription only if the person confirms it.',
    query: listQuery,
    response: doneAnswer('The address is no longer suppressed.'),
    async respond(call) {
      const { address, stream } = call.found;
      requireFound((await unsuppressAddress({ ...call, stream }, address)) || null, 'suppression');
      return {};
    },
  }),
];

/** A name that is none finds nothing. */
const streamIn = (context: Context) => storedStream(readQuery(context, listQuery).stream) ?? ofAll;

function present({ address, reason, createdAt, stream }: SuppressionRecord) {
  return { address, reason, createdAt: iso(createdAt), ...(stream !== ofAll && { stream }) };
}

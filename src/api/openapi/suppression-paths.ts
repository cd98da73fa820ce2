/** /api/public/suppressions in the document, and as CSV. */

import { query } from './list-paths.ts';
import { badLimit, badType, doneAnswer, inPath, managing, missing, one, paging } from './management-parts.ts';
import type { Document } from './openapi-document.ts';

const tag = 'Suppressions';
const time = '2026-03-02T08:15:30.120Z';
const dora = { address: 'dora@example.org', reason: 'asked by phone', createdAt: time };
const addressInPath = inPath('address', 'The address.', 'dora@example.org', 'idn-email');
const errors = {
  BAD_REQUEST: {
    when: 'The address in the path is not an email address.',
    message: 'The address in the path is not an email address.',
  },
  NOT_FOUND: missing('suppression'),
};
const [ofAll, ofOne] = ['HEAD, GET, POST', 'HEAD, GET, DELETE'];

const csv = (summary: string, value: string) => ({
  'text/csv': { schema: { type: 'string' as const }, examples: { example: { summary, value } } },
});

export const suppressionPaths: Document['paths'] = {
  '/api/public/suppressions': {
    get: managing({
      ...{ operationId: 'listSuppressions', tag, summary: 'List suppressions', allow: ofAll },
      description: 'The addresses that are not written to, by address.',
      parameters: [
        query('search', 'What is somewhere in the address, such as `@example.org`.', { type: 'string' }),
        ...paging(100, 1000),
      ],
      answerIs: 'A page of addresses.',
      answer: one('SuppressionsAnswer', 'One address', { success: true, suppressions: [dora], next: null }),
      errors: { VALIDATION_ERROR: badLimit(1000) },
    }),
    post: managing({
      ...{ operationId: 'addSuppression', tag, summary: 'Suppress an address', allow: ofAll },
      description: 'Puts an address on the list: mail to it is not sent.',
      body: one('NewSuppression', 'An address', { address: dora.address, reason: dora.reason }),
      answerIs: 'It is on the list.',
      answer: one('SuppressionAddedAnswer', 'Added', { success: true, added: true, suppression: dora }),
      errors: {
        VALIDATION_ERROR: {
          issues: [
            {
              ...{ code: 'custom', expected: 'an email address', received: 'string of 4 characters' },
              ...{ path: ['address'], message: 'address: must be an email address' },
            },
          ],
        },
        BAD_REQUEST: badType,
      },
    }),
  },
  '/api/public/suppressions/{address}': {
    get: managing({
      ...{ operationId: 'getSuppression', tag, summary: 'Look an address up', parameters: [addressInPath] },
      description: 'Whether an address is on the list, and why.',
      ...{ answerIs: 'It is on the list.', allow: ofOne, errors },
      answer: one('SuppressionAnswer', 'One that is', { success: true, suppression: dora }),
    }),
    delete: managing({
      ...{ operationId: 'removeSuppression', tag, summary: 'Remove a suppression' },
      ...{
        parameters: [addressInPath],
        description: 'Takes an address off the list: it is written to again.',
      },
      ...{ answerIs: 'It is off the list.', answer: doneAnswer, allow: ofOne, errors },
    }),
  },
  '/api/public/suppressions.csv': {
    get: managing({
      ...{ operationId: 'exportSuppressions', tag, summary: 'Export suppressions', allow: ofAll },
      description:
        'The whole list as CSV (RFC 4180), in UTF-8. A cell that a spreadsheet would take for a formula has an apostrophe ' +
        'before it, which the import takes off again.',
      answerIs: 'The list: `address`, `reason`, `createdAt`.',
      answer: csv(
        'One address',
        `"address","reason","createdAt"\r\n"dora@example.org","asked by phone","${time}"\r\n`,
      ),
    }),
    post: managing({
      ...{ operationId: 'importSuppressions', tag, summary: 'Import suppressions', allow: ofAll },
      description:
        'Puts all addresses of a list on the list: one a line, in CSV the first column, with or without a line of headings. ' +
        'Empty lines and lines that begin with # are skipped. Where a line has no address, nothing is imported, and the ' +
        'line is named. An import that was cut off can be given again.',
      bodyIs: 'The addresses: 100,000, and 10 MiB, at most.',
      body: csv(
        'A list with headings',
        'email,why\r\ndora@example.org,asked by phone\r\nemil@example.org,\r\n',
      ),
      answerIs: 'They are on the list.',
      answer: one('ImportAnswer', 'One of them was there before', { success: true, added: 1, before: 1 }),
      errors: {
        VALIDATION_ERROR: {
          when: 'A line has no email address; `issues` has the first of such lines.',
          message: 'Nothing was imported: no email address in line 2 ("nobody").',
          issues: [
            {
              ...{ code: 'custom', expected: 'an email address', received: 'nobody', path: ['line', '2'] },
              message: 'line 2: must be an email address',
            },
          ],
        },
        BAD_REQUEST: {
          when: 'The body is not CSV, or too large.',
          message: 'Content-Type must be text/csv.',
        },
      },
    }),
  },
};

/** /api/public/credits in the document. */

import { badLimit, managing, one, paging } from './management-parts.ts';
import type { Document } from './openapi-document.ts';

export const creditPaths: Document['paths'] = {
  '/api/public/credits': {
    get: managing({
      ...{ operationId: 'getCredits', tag: 'Credits', summary: 'Show credits', allow: 'HEAD, GET' },
      description: 'What is left of the quota and in the wallet, and every movement, the newest first.',
      parameters: paging(50, 1000),
      answerIs: 'The credits.',
      answer: one('CreditsAnswer', 'A quota of ten thousand', {
        success: true,
        quota: { limit: 10000, used: 0, remaining: 10000, renewsAt: '2026-04-02T08:15:30.120Z' },
        wallet: 0,
        ledger: [
          {
            ...{ at: '2026-03-02T08:15:30.120Z', change: 10000, reason: 'quota 10000' },
            ...{ emailId: null, balance: 10000 },
          },
        ],
        next: '0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27',
      }),
      errors: { VALIDATION_ERROR: badLimit(1000) },
    }),
  },
};

/** /api/public/pauses: mail that the rules hold or warn of. */

import { answer, byId, requireFound, resource } from '#front/api/management.ts';
import { noBody } from '#front/http/body-limits.ts';
import {
  findPause,
  listPauses,
  pauseDocument,
  releasePause,
} from '#mail/record/auto-pause/rows/auto-pauses.ts';
import { pauseSchemas } from './schema.ts';

const { PauseAnswer, PausesAnswer } = pauseSchemas;

const pauses = resource('Pauses', byId('pause', findPause));

const maxListed = 100;

export const pauseEndpoints = [
  pauses.collection({
    route: 'GET /pauses',
    operationId: 'listPauses',
    summary: 'List what is held',
    description:
      'The keys, streams and tags whose mail is held, or warned of, because of complaints, bounces or replies.',
    response: answer('What is held or warned of.', PausesAnswer),
    respond: async ({ db, orgId }) => ({
      pauses: (await listPauses(db, maxListed, orgId)).map(pauseDocument),
    }),
  }),
  pauses.item({
    route: 'POST /pauses/{id}/release',
    operationId: 'releasePause',
    summary: 'Release held mail',
    description:
      'Sends the mail again within seconds, and forgives what has counted until now. A warning is put aside.',
    body: noBody,
    response: answer('The pause, released.', PauseAnswer),
    async respond({ db, found, now }) {
      const released = requireFound(await releasePause(db, found, now), 'pause');
      return { pause: pauseDocument(released) };
    },
  }),
];

/** Every endpoint of the public API, in the order of the document. */
import { creditEndpoints } from '#front/api/credits/routes.ts';
import { domainEndpoints } from '#front/api/domains/routes.ts';
import { changeEmailEndpoints } from '#front/api/email/change-email.ts';
import { emailEndpoints } from '#front/api/email/routes.ts';
import { emailsEndpoints } from '#front/api/emails/routes.ts';
import { type EventParts, eventEndpoints } from '#front/api/events/routes.ts';
import { keyEndpoints } from '#front/api/keys/routes.ts';
import type { Document } from '#front/api/openapi/openapi-types.ts';
import { openApiEndpoints } from '#front/api/openapi/routes.ts';
import { pauseEndpoints } from '#front/api/pauses/routes.ts';
import { receivedEndpoints } from '#front/api/received/routes.ts';
import { routeEndpoints } from '#front/api/receiving-routes/routes.ts';
import { type BatchParts, batchEndpoints } from '#front/api/send/batch.ts';
import { sendEndpoints } from '#front/api/send/routes.ts';
import { statsEndpoints } from '#front/api/stats/routes.ts';
import { streamEndpoints } from '#front/api/streams/routes.ts';
import { csvEndpoints } from '#front/api/suppressions/csv.ts';
import { suppressionEndpoints } from '#front/api/suppressions/routes.ts';
import { webhookEndpoints } from '#front/api/webhooks/routes.ts';
import { testAndReplayEndpoints } from '#front/api/webhooks/test-and-replay.ts';
import type { Endpoint } from './endpoint.ts';
import type { Management } from './management.ts';

export type EndpointParts = BatchParts & EventParts & { management: Management; document(): Document };

export const endpoints: readonly Endpoint<EndpointParts>[] = [
  ...sendEndpoints,
  ...batchEndpoints,
  ...emailEndpoints,
  ...changeEmailEndpoints,
  ...emailsEndpoints,
  ...eventEndpoints,
  ...receivedEndpoints,
  ...domainEndpoints,
  ...keyEndpoints,
  ...streamEndpoints,
  ...pauseEndpoints,
  ...suppressionEndpoints,
  ...csvEndpoints,
  ...webhookEndpoints,
  ...testAndReplayEndpoints,
  ...routeEndpoints,
  ...creditEndpoints,
  ...statsEndpoints,
  ...openApiEndpoints,
];

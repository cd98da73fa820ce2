/** Every endpoint of the public API, in the order of the document. */
import { creditEndpoints } from '#api/credits/routes.ts';
import { domainEndpoints } from '#api/domains/routes.ts';
import { changeEmailEndpoints } from '#api/email/change-email.ts';
import { emailEndpoints } from '#api/email/routes.ts';
import { emailsEndpoints } from '#api/emails/routes.ts';
import { type EventParts, eventEndpoints } from '#api/events/routes.ts';
import { keyEndpoints } from '#api/keys/routes.ts';
import { type DocumentParts, openApiEndpoints } from '#api/openapi/routes.ts';
import { type BatchParts, batchEndpoints } from '#api/send/batch.ts';
import { sendEndpoints } from '#api/send/routes.ts';
import { csvEndpoints } from '#api/suppressions/csv.ts';
import { suppressionEndpoints } from '#api/suppressions/routes.ts';
import { webhookEndpoints } from '#api/webhooks/routes.ts';
import { testAndReplayEndpoints } from '#api/webhooks/test-and-replay.ts';
import type { Endpoint } from './endpoint.ts';
import type { ManagementParts } from './management.ts';

export type EndpointParts = BatchParts & EventParts & ManagementParts & DocumentParts;

export const endpoints: readonly Endpoint<EndpointParts>[] = [
  ...sendEndpoints,
  ...batchEndpoints,
  ...emailEndpoints,
  ...changeEmailEndpoints,
  ...emailsEndpoints,
  ...eventEndpoints,
  ...domainEndpoints,
  ...keyEndpoints,
  ...suppressionEndpoints,
  ...csvEndpoints,
  ...webhookEndpoints,
  ...testAndReplayEndpoints,
  ...creditEndpoints,
  ...openApiEndpoints,
];

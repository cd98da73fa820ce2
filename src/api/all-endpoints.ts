/** Every endpoint of the public API, in the order of the document. */
import { creditEndpoints } from './credits/routes.ts';
import { domainEndpoints } from './domains/routes.ts';
import { changeEmailEndpoints } from './email/change-email.ts';
import { emailEndpoints } from './email/routes.ts';
import { emailsEndpoints } from './emails/routes.ts';
import type { Endpoint } from './endpoint.ts';
import { type EventParts, eventEndpoints } from './events/routes.ts';
import { keyEndpoints } from './keys/routes.ts';
import type { ManagementParts } from './management.ts';
import { type DocumentParts, openApiEndpoints } from './openapi/routes.ts';
import { type BatchParts, batchEndpoints } from './send/batch.ts';
import { sendEndpoints } from './send/routes.ts';
import { csvEndpoints } from './suppressions/csv.ts';
import { suppressionEndpoints } from './suppressions/routes.ts';
import { webhookEndpoints } from './webhooks/routes.ts';
import { testAndReplayEndpoints } from './webhooks/test-and-replay.ts';

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

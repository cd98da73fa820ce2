/** GET /api/public/openapi.json. It needs no key and counts toward no limit. */
import { z } from 'zod';
import { type Endpoint, jsonResponse } from '#front/api/endpoint.ts';
import type { Document } from './openapi-types.ts';

export const openApiEndpoints: Endpoint<{ document(): Document }>[] = [
  {
    route: 'GET /openapi.json',
    operationId: 'getOpenApi',
    tag: 'Reference',
    summary: 'Get this document',
    description: 'This OpenAPI document. It needs no key and counts toward no limit.',
    scopes: [],
    response: jsonResponse(
      'An OpenAPI 3.1 document.',
      z.object({ openapi: z.string(), info: z.object({}), paths: z.object({}) }),
    ),
    errors: {},
    handler({ document }) {
      let json: Buffer | undefined;
      return (context) => {
        // Clients that read slowly have it together.
        json ??= Buffer.from(JSON.stringify(document()));
        context.type = 'json';
        context.body = json;
      };
    },
  },
];

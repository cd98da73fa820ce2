/**
 * The OpenAPI 3.1 document of the public API. Operations come from the declarations of the endpoints, schemas from the
 * zod schemas that check requests, examples from a real server (recorded-examples.ts).
 */
import { endpoints } from '#front/api/all-endpoints.ts';
import { parseRoute } from '#front/api/endpoint.ts';
import { componentSchemas } from './component-schemas.ts';
import { managementTags, overview } from './description.ts';
import { headers } from './header-components.ts';
import type { Document } from './openapi-types.ts';
import { operationOf } from './operation.ts';
import { readExamples } from './recorded-examples.ts';

/** The document is built when it is first asked for, then kept. */
export function documentOf(baseUrl: () => string): () => Document {
  let built: Document | undefined;
  return () => {
    built ??= createDocument(baseUrl());
    return built;
  };
}

function createDocument(baseUrl: string): Document {
  return {
    openapi: '3.1.1',
    info: {
      title: 'Postern',
      version: '1',
      summary: 'Send transactional email and see what happened to each recipient.',
      description: overview.replaceAll('https://mail.example.com', baseUrl),
    },
    servers: [{ url: baseUrl }],
    tags: [
      { name: 'Email', description: 'Send email and look it up.' },
      { name: 'Events', description: 'Everything that happened, in order.' },
      ...managementTags,
      { name: 'Reference', description: 'This document.' },
    ],
    paths: paths(),
    components: {
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', bearerFormat: 'em_…', description: 'An API key.' },
      },
      headers,
      schemas: componentSchemas(),
    },
  };
}

function paths(): Document['paths'] {
  const recorded = readExamples();
  const byPath: Document['paths'] = {};
  for (const endpoint of endpoints) {
    const { method, path } = parseRoute(endpoint.route);
    byPath[`/api/public${path}`] ??= {};
    byPath[`/api/public${path}`]![method] = operationOf(endpoint, recorded);
  }
  return byPath;
}

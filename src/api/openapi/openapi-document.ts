/**
 * The OpenAPI 3.1 document of the public API. The schemas come from the zod schemas that requests are held against
 * (component-schemas.ts), the errors from the table of codes (error-responses.ts), the operations from operations.ts with their examples;
 * test/api/openapi.test.ts sends those to the real server and holds its answers against all of it.
 */

import { type ComponentSchema, componentSchemas } from './component-schemas.ts';
import { creditPaths } from './credit-paths.ts';
import { overview } from './description.ts';
import { domainPaths } from './domain-paths.ts';
import { type Header, headers } from './header-components.ts';
import { keyPaths } from './key-paths.ts';
import { listEmails, listEvents } from './list-paths.ts';
import { managingTags } from './management-parts.ts';
import { getEmail, getOpenApi, sendEmail } from './operations.ts';
import { suppressionPaths } from './suppression-paths.ts';
import { webhookPaths } from './webhook-paths.ts';

export interface Example {
  summary: string;
  value: unknown;
}

interface Media {
  schema: ComponentSchema;
  examples?: Record<string, Example>;
}

export type DocumentedContent = Partial<Record<'application/json' | 'text/csv' | 'text/event-stream', Media>>;

export type Method = 'get' | 'post' | 'patch' | 'delete';

export interface DocumentedResponse {
  description: string;
  headers: Record<string, { $ref: string }>;
  content: DocumentedContent;
}

export interface Parameter {
  name: string;
  in: 'path' | 'header' | 'query';
  required: boolean;
  description: string;
  schema: ComponentSchema;
  example?: string;
}

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  /** One of these; none: no key is needed. */
  security: Record<string, string[]>[];
  parameters: Parameter[];
  requestBody?: { required: true; description: string; content: DocumentedContent };
  responses: Record<string, DocumentedResponse>;
}

export interface Document {
  openapi: '3.1.1';
  info: { title: string; version: string; summary: string; description: string };
  servers: { url: string }[];
  tags: { name: string; description: string }[];
  paths: Record<string, Partial<Record<Method, Operation>>>;
  components: {
    securitySchemes: Record<string, object>;
    headers: Record<string, Header>;
    schemas: Record<string, ComponentSchema>;
  };
}

/** Made when it is first asked for, then kept. */
export function documentOf(baseUrl: () => string): () => Document {
  let made: Document | undefined;
  return () => {
    made ??= createDocument(baseUrl());
    return made;
  };
}

function createDocument(baseUrl: string): Document {
  return {
    openapi: '3.1.1',
    info: {
      title: 'Postern',
      version: '1',
      summary: 'Transactional email: send it, and know what became of it.',
      description: overview,
    },
    servers: [{ url: baseUrl }],
    tags: [
      { name: 'Email', description: 'Send email, and ask after it.' },
      { name: 'Events', description: 'What happened, in order.' },
      ...managingTags,
      { name: 'Reference', description: 'This document.' },
    ],
    paths: {
      '/api/public/email/send': { post: sendEmail },
      '/api/public/email/{id}': { get: getEmail },
      '/api/public/emails': { get: listEmails },
      '/api/public/events': { get: listEvents },
      ...domainPaths,
      ...keyPaths,
      ...suppressionPaths,
      ...webhookPaths,
      ...creditPaths,
      '/api/public/openapi.json': { get: getOpenApi },
    },
    components: {
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', bearerFormat: 'em_…', description: 'An API key.' },
      },
      headers,
      schemas: componentSchemas(),
    },
  };
}

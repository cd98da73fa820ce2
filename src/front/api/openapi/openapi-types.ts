/** The parts of an OpenAPI 3.1 document that this service writes. */
import type { z } from 'zod';

export type ComponentSchema = z.core.JSONSchema.BaseSchema;

export type Method = 'get' | 'post' | 'patch' | 'delete';

export type MediaType =
  | 'application/json'
  | 'application/octet-stream'
  | 'message/rfc822'
  | 'text/csv'
  | 'text/event-stream';

export type Examples = Record<string, { summary: string; value: unknown }>;

export type DocumentedContent = Partial<Record<MediaType, { schema: ComponentSchema; examples?: Examples }>>;

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

export interface Header {
  description: string;
  /** True if a response that lists the header always has it. */
  required: boolean;
  schema: ComponentSchema;
  example: string | number;
}

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  /** Any one of these is enough; an empty list means that no key is needed. */
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

export const refTo = (kind: 'schemas' | 'headers', name: string) => ({
  $ref: `#/components/${kind}/${name}`,
});

/**
 * The zod schemas as JSON Schema 2020-12, by their names in the document. A rule of ours that has no JSON Schema keyword
 * is added to the field's description in words.
 */
import { z } from 'zod';
import { creditSchemas } from '#front/api/credits/schema.ts';
import { domainChange, domainSchemas, newDomain } from '#front/api/domains/schema.ts';
import { emailSchemas } from '#front/api/email/schema.ts';
import { emailsSchemas } from '#front/api/emails/schema.ts';
import { eventSchemas } from '#front/api/events/schema.ts';
import { keySchemas, newKeyRequest } from '#front/api/keys/schema.ts';
import { done } from '#front/api/management.ts';
import { pauseSchemas } from '#front/api/pauses/schema.ts';
import { receivedSchemas } from '#front/api/received/schema.ts';
import { newRoute, routeChange, routeSchemas } from '#front/api/receiving-routes/schema.ts';
import { batchAnswer, batchRequest } from '#front/api/send/batch.ts';
import { dryRunAnswer, sendResult } from '#front/api/send/dry-run.ts';
import { addressLists, sendSchema } from '#front/api/send/schema.ts';
import { sendAnswer } from '#front/api/send/send-response.ts';
import { statsSchemas } from '#front/api/stats/schema.ts';
import { newStream, streamChange, streamSchemas } from '#front/api/streams/schema.ts';
import { newSuppression, suppressionSchemas } from '#front/api/suppressions/schema.ts';
import { newWebhook, replayRequest, webhookChange, webhookSchemas } from '#front/api/webhooks/schema.ts';
import { expectedBy } from '#platform/vendor/zod.ts';
import { errorSchemas } from './error-responses.ts';
import { type ComponentSchema, refTo } from './openapi-types.ts';

const requests = {
  SendRequest: sendSchema,
  BatchRequest: batchRequest,
  NewDomain: newDomain,
  DomainChange: domainChange,
  NewKey: newKeyRequest,
  NewStream: newStream,
  StreamChange: streamChange,
  NewSuppression: newSuppression,
  NewWebhook: newWebhook,
  WebhookChange: webhookChange,
  Replay: replayRequest,
  NewRoute: newRoute,
  RouteChange: routeChange,
};

const responses = {
  SendAnswer: sendAnswer,
  DryRunAnswer: dryRunAnswer,
  SendResult: sendResult,
  BatchAnswer: batchAnswer,
  ...emailSchemas,
  ...emailsSchemas,
  ...eventSchemas,
  ...receivedSchemas,
  ...domainSchemas,
  ...keySchemas,
  ...streamSchemas,
  ...pauseSchemas,
  ...suppressionSchemas,
  ...webhookSchemas,
  ...routeSchemas,
  ...creditSchemas,
  ...statsSchemas,
  Done: done,
  ...errorSchemas,
};

const names = new Map(
  Object.entries<z.ZodType>({ ...requests, ...responses }).map(([name, schema]) => [schema, name]),
);

/** Undefined: the schema is not a component. */
export function schemaRef(schema: z.ZodType): ComponentSchema | undefined {
  const name = names.get(schema);
  return name === undefined ? undefined : refTo('schemas', name);
}

export function inlineSchema(schema: z.ZodType): ComponentSchema {
  return finished(z.toJSONSchema(schema, { io: 'input' }));
}

export function componentSchemas(): Record<string, ComponentSchema> {
  return {
    ...converted(requests, 'input'),
    ...converted(responses, 'output'),
  };
}

function converted(
  schemas: Record<string, z.ZodType>,
  io: 'input' | 'output',
): Record<string, ComponentSchema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(schemas)) registry.add(schema, { id });
  const { schemas: found } = z.toJSONSchema(registry, {
    io,
    uri: (id) => refTo('schemas', id).$ref,
    override: ({ zodSchema, jsonSchema }) => {
      addRules(zodSchema, jsonSchema);
      dropNoise(jsonSchema);
      if (addressLists.includes(zodSchema)) orOneAlone(jsonSchema);
      if (jsonSchema.oneOf) addDiscriminator(jsonSchema, zodSchema);
    },
  });
  return Object.fromEntries(Object.entries(found).map(([name, schema]) => [name, finished(schema)]));
}

/** Rules are collected here and turned into words at the end, because the description of an outer schema wins in zod. */
const rulesKey = 'x-rules';

function addRules(zodSchema: z.core.$ZodTypes, jsonSchema: ComponentSchema): void {
  const rules = new Set([
    ...((jsonSchema[rulesKey] as string[] | undefined) ?? []),
    ...expectedBy(zodSchema),
  ]);
  if (rules.size > 0) jsonSchema[rulesKey] = [...rules];
}

/** Drops patterns that repeat a format, the bounds of JavaScript's integers, and that property names are strings. */
function dropNoise(jsonSchema: ComponentSchema): void {
  if (jsonSchema.format) delete jsonSchema.pattern;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  const { propertyNames } = jsonSchema;
  if (propertyNames && Object.keys(propertyNames).join() === 'type') delete jsonSchema.propertyNames;
}

/** `to`, `cc` and `bcc` take an array, or one element without the array. */
function orOneAlone(jsonSchema: ComponentSchema): void {
  const { type, items, minItems, maxItems } = jsonSchema;
  for (const key of ['type', 'items', 'minItems', 'maxItems']) delete jsonSchema[key];
  jsonSchema.anyOf = [items as ComponentSchema, { type, items, minItems, maxItems }];
}

function addDiscriminator(jsonSchema: ComponentSchema, zodSchema: z.core.$ZodTypes): void {
  const options = (zodSchema as z.ZodDiscriminatedUnion).options as z.ZodObject[];
  const types = options.map(({ shape }) => (shape.type as z.ZodLiteral).value as string);
  const mapping = Object.fromEntries(types.map((type, index) => [type, jsonSchema.oneOf![index]!.$ref]));
  jsonSchema.discriminator = { propertyName: 'type', mapping };
}

/** Removes zod's own keys and writes rules as words, at every depth. */
function finished(node: unknown): ComponentSchema {
  return JSON.parse(JSON.stringify(node), (_, value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const { $schema, $id, [rulesKey]: rules, ...schema } = value;
    if (!rules) return schema;
    const words = `Must be ${rules.join('; ')}.`;
    return { ...schema, description: schema.description ? `${schema.description} ${words}` : words };
  });
}

/** Reads the bodies of dialects: forms, and JSON, which may be empty even if its Content-Type says JSON. */
import type { Context } from 'koa';
import { countJson, type FormBody, type JsonBody, type JsonOrForm } from '#front/http/body-limits.ts';
import type { JsonLimits } from '#front/http/json-counter.ts';
import { parseJson, readBody } from '#front/http/request-body.ts';
import type { ByteHold } from '#platform/base/limits/byte-budget.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { isEmptyList } from './dialect.ts';
import { parseForm } from './form.ts';

/** JSON in a field of a form or of a header. */
export function objectIn(text: string, name: string, limits: JsonLimits): Record<string, unknown> {
  countJson(text, limits, name);
  const value = parsed(text, name);
  if (isEmptyList(value)) return {};
  if (value !== null && typeof value === 'object' && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new Refusal('BAD_REQUEST', `${name}: must be a JSON object.`);
}

function parsed(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal('BAD_REQUEST', `${name}: is not JSON.`);
  }
}

/** Undefined: it is empty. SDKs send `Content-Type: application/json` with every POST. */
export async function readDialectBody(
  { req }: Context,
  slot: ByteHold,
  declared: JsonBody | FormBody | JsonOrForm,
): Promise<unknown> {
  const { 'content-length': length, 'transfer-encoding': coding, 'content-type': type = '' } = req.headers;
  if (coding === undefined && (length === undefined || length === '0')) return undefined;
  const body = declared.kind === 'json or form' ? chosen(declared, type) : declared;
  const bytes = await readBody(req, slot, body);
  if (bytes.length === 0) return undefined;
  return body.kind === 'form' ? parseForm(bytes, type, body) : parseJson(bytes);
}

function chosen({ json, form }: JsonOrForm, type: string): JsonBody | FormBody {
  return type.startsWith('application/json') ? json : form;
}

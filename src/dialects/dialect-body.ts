/** Reads the bodies of dialects: forms, and JSON, which may be empty even if its Content-Type says JSON. */
import type { Context } from 'koa';
import type { Slot } from '../api/admission.ts';
import { createMemberLimit } from '../api/json-members.ts';
import { largestBody, parseJson, readBody } from '../api/request-body.ts';
import { Refusal } from '../mail/refusal.ts';
import type { DialectRoute } from './dialect.ts';
import { parseForm } from './form.ts';

/** A call can have a thousand emails, of which each has some members. */
const maxMembers = 50_000;

/** JSON.stringify, for one, calls itself at each level, and overflows the stack at some thousands. */
const maxDepth = 100;

function limitDepth(): (byte: number) => boolean {
  let depth = 0;
  return (byte) => {
    if (byte === 0x5b || byte === 0x7b) depth += 1;
    if (byte === 0x5d || byte === 0x7d) depth -= 1;
    if (depth > maxDepth)
      throw new Refusal('BAD_REQUEST', `The body is nested more than ${maxDepth} levels deep.`);
    return false;
  };
}

/** JSON in a field of a form or of a header. */
export function objectIn(text: string, name: string): Record<string, unknown> {
  createMemberLimit({ maxMembers: 2 * maxMembers, structure: limitDepth() })(Buffer.from(text));
  const value = parsed(text, name);
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

/** Undefined if the body is empty: SDKs send `Content-Type: application/json` with every POST. */
export async function readDialectBody(
  { req }: Context,
  slot: Slot,
  wanted: DialectRoute['hasBody'],
): Promise<unknown> {
  const { 'content-length': length, 'transfer-encoding': coding, 'content-type': type = '' } = req.headers;
  const isForm = wanted === 'form' || (wanted === 'any' && !type.startsWith('application/json'));
  if (coding === undefined && (length === undefined || length === '0')) return undefined;
  const bytes = await readBody(req, slot, {
    type: isForm ? 'multipart/form-data' : 'application/json',
    largest: largestBody,
    ...(!isForm && { check: createMemberLimit({ maxMembers, structure: limitDepth(), takesBytes: true }) }),
  });
  if (bytes.length === 0) return undefined;
  return isForm ? parseForm(bytes, type) : parseJson(bytes);
}

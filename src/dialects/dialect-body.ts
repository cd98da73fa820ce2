/** Reads the bodies of dialects: JSON, which may be empty even if its Content-Type says JSON. */
import type { Context } from 'koa';
import type { Slot } from '../api/admission.ts';
import { createMemberLimit } from '../api/json-members.ts';
import { largestBody, parseJson, readBody } from '../api/request-body.ts';

/** A call can have a thousand emails, of which each has some members. */
const maxMembers = 50_000;

/** Undefined if the body is empty: SDKs send `Content-Type: application/json` with every POST. */
export async function readDialectBody({ req }: Context, slot: Slot): Promise<unknown> {
  const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
  if (coding === undefined && (length === undefined || length === '0')) return undefined;
  const bytes = await readBody(req, slot, {
    type: 'application/json',
    largest: largestBody,
    check: createMemberLimit({ maxMembers }),
  });
  return bytes.length === 0 ? undefined : parseJson(bytes);
}

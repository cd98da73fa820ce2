/** The world that the examples of the OpenAPI document live in, and the document that its server gives. */
import type { ExecutionContext } from 'ava';
import { addSuppression } from '#accounts/rows/suppressions.ts';
import { compareKey } from '#platform/values/address.ts';
import { readContract } from '../openapi.ts';
import { startWorld, type World, type WorldOptions } from './world.ts';

export const baseUrl = 'https://mail.example.com';
export const sendPath = '/api/public/email/send';
export const emailPath = '/api/public/email/{id}';

/** example.com is ours, example.org has a mail server with a few mailboxes. */
export const exampleWorld = async (t: ExecutionContext, settings: Record<string, string> = {}) =>
  withContract(await startWorld(t, exampleOptions(settings)));

/** Of a world with the options below, for an organization of its own or not. */
export async function withContract(world: World) {
  const contract = await readContract(world);
  const post = (body: unknown, headers: Record<string, string> = {}) =>
    world.call('POST', sendPath, { body: JSON.stringify(body), headers });
  return { world, orgId: world.orgId, contract, post };
}

export function exampleOptions(settings: Record<string, string> = {}): WorldOptions {
  const script = {
    rcpt: ({ address = '' }) => {
      if (address.startsWith('bob@')) return '550 5.1.1 no such mailbox';
      return address.startsWith('greta@') ? '451 4.7.1 greylisted, try again' : undefined;
    },
    dot: () => '250 2.0.0 OK: queued as 4bX9Vq1Zc2z',
  };
  return {
    zone: { 'example.org': { MX: ['10 mx1.example.org'] }, 'mx1.example.org': { A: ['127.0.0.2'] } },
    exchangers: [{ script }],
    settings: { POSTERN_BASE_URL: baseUrl, POSTERN_HOSTNAME: 'mail.example.com', ...settings },
  };
}

export const rename = (world: World, name: string, status = 'verified') =>
  world.db('domains').where({ org_id: world.orgId }).update({ name, status });

export async function suppress(world: World, orgId: string, address: string) {
  const addressKey = compareKey(address);
  await addSuppression(world.db, { orgId, address, addressKey, reason: 'test' }, Date.now());
}

/** Names for completion to find: two organizations with a domain each, a key, and a suppressed address that is hostile. */
import type { ExecutionContext } from 'ava';
import { startCli } from '../cli.ts';

export async function startNames(t: ExecutionContext) {
  const scene = await startCli(t);
  const { json } = scene;
  await json('org create --name', 'Two Words');
  await json('domain add acme.example --org Acme');
  await json('domain add words.example --org', 'Two Words');
  const { id } = await json('key create --org Acme --label web --scope email:send');
  // An address is another's choice: none of it may run.
  await json('suppression add --org Acme', '`touch$IFS{}pwned`@x.example');
  return { ...scene, keyId: id };
}

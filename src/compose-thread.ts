/**
 * A thread that composes and signs, for compose/threads.ts: its way in, started by main.ts with where the
 * secrets are, which open the keys and sign the links here. Nobody imports this file.
 */
import { flushCompileCache } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { createSeal } from './accounts/seal.ts';
import { composeMessages } from './compose/message.ts';
import type { OrderKey } from './compose/order.ts';
import { createKeyRing } from './compose/sign.ts';
import { serveOrders } from './compose/threads.ts';
import { loadSecrets, type SecretSource } from './secret.ts';
import { createLinks } from './tracking/links.ts';

if (import.meta.main && parentPort) {
  const secrets = loadSecrets(workerData as SecretSource);
  const links = createLinks(secrets);
  const keyOf = createKeyRing(createSeal(secrets).open);
  serveOrders(parentPort, ({ fields, tracking: { opens, clicks, base, deliveryIds }, signer }) => {
    const trackers = deliveryIds.map((id) => links.tracker(base, id));
    const { domain, second } = signer;
    const ready = ({ selector, sealedKey }: OrderKey) => ({ selector, privateKey: keyOf(sealedKey) });
    return composeMessages(
      fields,
      { opens, clicks, trackers },
      { domain, ...ready(signer), ...(second && { second: ready(second) }) },
    );
  });
  flushCompileCache();
}

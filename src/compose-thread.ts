/**
 * A thread that composes and signs, for compose/threads.ts: its way in, started by main.ts with the secret, which
 * opens the keys and signs the links here. Nobody imports this file.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { createSeal } from './accounts/seal.ts';
import { composeMessages } from './compose/message.ts';
import { createKeyRing } from './compose/sign.ts';
import { serveOrders } from './compose/threads.ts';
import { createLinks } from './tracking/links.ts';

if (import.meta.main && parentPort) {
  const { secret } = workerData as { secret: string };
  const links = createLinks([secret]);
  const keyOf = createKeyRing(createSeal(secret).open);
  serveOrders(parentPort, ({ fields, tracking: { opens, clicks, base, deliveryIds }, signer }) => {
    const trackers = deliveryIds.map((id) => links.tracker(base, id));
    const { domain, selector, sealedKey } = signer;
    return composeMessages(
      fields,
      { opens, clicks, trackers },
      { domain, selector, privateKey: keyOf(sealedKey) },
    );
  });
}

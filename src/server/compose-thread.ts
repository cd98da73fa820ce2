/**
 * The entry of a composing thread (compose/compose-threads.ts). main.ts starts it with the location of the secrets, which
 * open the DKIM keys and sign the tracking links here. No file imports it.
 */
import { flushCompileCache } from 'node:module';
import { constants, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { createSeal } from '../accounts/seal.ts';
import { loadSecrets, type SecretSource } from '../base/secrets.ts';
import type { ComposeKey } from '../compose/compose-order.ts';
import { serveOrders } from '../compose/compose-threads.ts';
import { composeMessages } from '../compose/message.ts';
import { createKeyRing } from '../compose/sign.ts';
import { createTrackingLinks } from '../tracking/tracking-links.ts';

if (import.meta.main && parentPort) {
  const { isForLarge, ...source } = workerData as SecretSource & { isForLarge: boolean };
  // On Linux this sets the priority of this thread only. Large mails yield to all other work.
  if (isForLarge && process.platform === 'linux') setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  const secrets = loadSecrets(source);
  const links = createTrackingLinks(secrets);
  const keyOf = createKeyRing(createSeal(secrets).open);
  serveOrders(parentPort, ({ fields, tracking: { opens, clicks, base, deliveryIds }, signer }) => {
    const trackers = deliveryIds.map((id) => links.tracker(base, id));
    const { domain, second } = signer;
    const ready = ({ selector, sealedKey }: ComposeKey) => ({ selector, privateKey: keyOf(sealedKey) });
    return composeMessages(
      fields,
      { opens, clicks, trackers },
      { domain, ...ready(signer), ...(second && { second: ready(second) }) },
    );
  });
  flushCompileCache();
}

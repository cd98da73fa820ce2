/** What a composing thread does with an order: opens the DKIM keys, makes the tracking links, composes and signs. */
import { createSeal } from '../accounts/seal.ts';
import { loadSecrets, type SecretSource } from '../base/secrets.ts';
import type { ComposeKey, ComposeOrder } from '../compose/compose-order.ts';
import { composeMessages } from '../compose/message.ts';
import type { Composed } from '../compose/recipient-copies.ts';
import { createKeyRing } from '../compose/sign.ts';
import { createTrackingLinks } from '../tracking/tracking-links.ts';

export function createOrderComposer(source: SecretSource): (order: ComposeOrder) => Composed {
  const secrets = loadSecrets(source);
  const links = createTrackingLinks(secrets);
  const keyOf = createKeyRing(createSeal(secrets).open);
  return ({ fields, tracking: { opens, clicks, base, deliveryIds }, signer }) => {
    const trackers = deliveryIds.map((id) => links.tracker(base, id));
    const { domain, second } = signer;
    const ready = ({ selector, sealedKey }: ComposeKey) => ({ selector, privateKey: keyOf(sealedKey) });
    return composeMessages(
      fields,
      { opens, clicks, trackers },
      { domain, ...ready(signer), ...(second && { second: ready(second) }) },
    );
  };
}

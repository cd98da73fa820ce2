/**
 * Carries out an order, on a composing thread or the main one: opens the DKIM keys, makes the tracking links, composes and
 * signs.
 */
import { createSeal } from '#accounts/seal.ts';
import type { ComposeKey, ComposeOrder } from '#mail/compose/compose-order.ts';
import { composeMessages } from '#mail/compose/message.ts';
import type { Composed } from '#mail/compose/recipient-copies.ts';
import { createKeyRing } from '#mail/compose/sign.ts';
import { createTrackingLinks } from '#mail/record/tracking/tracking-links.ts';
import type { Secrets } from '#platform/base/secrets.ts';

export function createOrderComposer(secrets: Secrets): (order: ComposeOrder) => Composed {
  const links = createTrackingLinks(secrets);
  const privateKeyOf = createKeyRing(createSeal(secrets).open);
  return ({ fields, tracking: { opens, clicks, base, deliveryIds }, signer }) => {
    const trackers = deliveryIds.map((id) => links.tracker(base, id));
    const { domain, second } = signer;
    const ready = ({ selector, sealedKey }: ComposeKey) => ({
      selector,
      privateKey: privateKeyOf(sealedKey),
    });
    return composeMessages(
      fields,
      { opens, clicks, trackers },
      { domain, ...ready(signer), ...(second && { second: ready(second) }) },
    );
  };
}

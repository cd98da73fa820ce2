/**
 * Carries out an order, on a composing thread or the main one: opens the DKIM keys, makes the tracking links, composes and
 * signs.
 */
import { createSeal } from '#accounts/seal.ts';
import type { ComposeKey, ComposeOrder } from '#mail/compose/compose-order.ts';
import { composeMessages } from '#mail/compose/message.ts';
import type { Composed } from '#mail/compose/recipient-copies.ts';
import { createKeyRing } from '#mail/compose/sign.ts';
import { subscriptionText } from '#mail/record/tracking/subscription-text.ts';
import { createTrackingLinks } from '#mail/record/tracking/tracking-links.ts';
import { createReturnPath, unsubscribeAddress } from '#mail/returned/return-path.ts';
import type { Secrets } from '#platform/base/secrets.ts';

export function createOrderComposer(secrets: Secrets): (order: ComposeOrder) => Composed {
  const links = createTrackingLinks(secrets);
  const privateKeyOf = createKeyRing(createSeal(secrets).open);
  const unsubscribeAt = createReturnPath(secrets, '', unsubscribeAddress);
  const placesOf = ({ orgId, subscription, tracking }: ComposeOrder, index: number): string | null => {
    if (!subscription) return null;
    const { addresses, mailDomain, ...of } = subscription;
    const deliveryId = tracking.deliveryIds[index]!;
    const subject = subscriptionText({ ...of, orgId, address: addresses[index]! });
    const link = links.tracker(tracking.base, orgId, deliveryId).unsubscribe(subject);
    if (mailDomain === null) return `<${link}>`;
    return `<${link}>, <mailto:${unsubscribeAt(deliveryId, mailDomain)}?subject=unsubscribe>`;
  };
  return (order) => {
    const { orgId, fields, tracking, signer } = order;
    const { opens, clicks, base, deliveryIds } = tracking;
    const trackers = deliveryIds.map((id, index) => ({
      ...links.tracker(base, orgId, id),
      unsubscribe: placesOf(order, index),
    }));
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

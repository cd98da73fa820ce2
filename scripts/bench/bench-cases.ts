/**
 * The work of the bench: mails of one recipient each, by size, tracking and number of destinations. The body is the same with
 * and without tracking, so that both can be compared: an HTML part with five links, and a short text.
 */
import { recipientMark } from '#lab/load/loader.ts';

export interface Case {
  name: string;
  /** Size of the text and HTML together, before encoding. */
  bytes: number;
  tracking: boolean;
  destinations: number;
  /** Mails in a call. */
  batch: number;
}

const many = 50;

const kilobyte = 1024;

const sizes = [
  { bytes: 4 * kilobyte, spread: [1, many] },
  { bytes: 40 * kilobyte, spread: [1, many] },
  { bytes: 100 * kilobyte, spread: [1] },
];

const single: Case[] = sizes.flatMap(({ bytes, spread }) =>
  spread.flatMap((destinations) =>
    [false, true].map((tracking) => ({
      name: [
        `${bytes / kilobyte}k`,
        ...(destinations > 1 ? ['many'] : []),
        ...(tracking ? ['tracked'] : []),
      ].join('-'),
      bytes,
      tracking,
      destinations,
      batch: 1,
    })),
  ),
);

/** `batch` is not among those that run by default. */
export const cases: Case[] = [
  ...single,
  { name: 'batch', bytes: 4096, tracking: false, destinations: many, batch: 100 },
];

/** The address of each destination's MX host. */
export function hostsOf({ destinations }: Case): string[] {
  return Array.from({ length: destinations }, (_, index) => `127.0.1.${index + 1}`);
}

export const domainOf = (index: number) => `there${index + 1}.invalid`;

/** Each destination has one MX host. */
export function zoneOf(hosts: string[]) {
  return Object.fromEntries(
    hosts.flatMap((host, index) => [
      [domainOf(index), { MX: [`10 mx.${domainOf(index)}`] }],
      [`mx.${domainOf(index)}`, { A: [host] }],
    ]),
  );
}

/** Distinct recipients, over the destinations in turn. */
export function recipientsOf({ destinations }: Case, mails: number, label: string): string[] {
  return Array.from({ length: mails }, (_, index) => `${label}-${index}@${domainOf(index % destinations)}`);
}

/** The request body, with a placeholder for the recipient. */
export function bodyOf({ bytes, tracking }: Case): string {
  const text = 'Hello,\r\n\r\nyour order has been sent, and should be with you on Tuesday.\r\n'.repeat(6);
  const links = [1, 2, 3, 4, 5].map(
    (link) =>
      `<p><a href="https://shop.sender.invalid/orders/4711?item=${link}&amp;from=mail">Item</a></p>\r\n`,
  );
  const frame = `<html><body><h1>Your order</h1>\r\n${links.join('')}</body></html>\r\n`;
  const line = '<p>All of this is an ordinary line of an ordinary mail, 7 bits, no more.</p>\r\n';
  const filling = line.repeat(Math.floor((bytes - text.length - frame.length) / line.length));
  const html = frame.replace('</body>', `${filling}</body>`);
  return JSON.stringify({
    from: 'Shop <shop@sender.invalid>',
    to: recipientMark,
    subject: 'Your order 4711 has been sent',
    text,
    html,
    tracking: { openTracking: tracking, clickTracking: tracking },
  });
}

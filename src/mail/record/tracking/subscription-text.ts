/** A subscription as the link that ends it has it (tracking-links.ts): everything that is needed, so the email may be gone. */

interface LinkedSubscription {
  orgId: string;
  stream: string;
  address: string;
  isTest: boolean;
}

export function subscriptionText({ orgId, stream, address, isTest }: LinkedSubscription): string {
  return [orgId, isTest ? 'test' : 'live', stream, address].join(' ');
}

/** The link is genuine, so the text has this form. */
export function readSubscription(text: string): LinkedSubscription {
  const [orgId, kind, stream, ...rest] = text.split(' ') as [string, string, string, ...string[]];
  return { orgId, stream, address: rest.join(' '), isTest: kind === 'test' };
}

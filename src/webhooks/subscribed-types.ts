import { formatOf, type WebhookFormatName } from './formats/all-formats.ts';

export interface Subscription {
  /** No types means all. */
  types: readonly string[];
  format: WebhookFormatName;
}

/** Whether an endpoint gets events of a type. webhook.test is posted only to the endpoint under test. */
export function wants({ types, format }: Subscription, type: string): boolean {
  return formatOf(format).writes(type) && (types.length === 0 || types.includes(type));
}

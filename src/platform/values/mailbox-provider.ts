/**
 * The providers of personal mailboxes that have rules for senders, by the domains of their addresses. Mail to companies with the
 * same hosts is not what the rules count.
 */
export const mailboxProviders = ['gmail', 'yahoo', 'microsoft'] as const;

export type MailboxProvider = (typeof mailboxProviders)[number];

export const providerTitles: Record<MailboxProvider, string> = {
  gmail: 'Gmail',
  yahoo: 'Yahoo',
  microsoft: 'Outlook.com',
};

/** Yahoo Japan is another company. */
const personal =
  /^(?:(?<gmail>g(?:oogle)?mail\.com)|(?<yahoo>yahoo\.(?:com|[a-z]{2}|com?\.(?!jp)[a-z]{2})|aol\.(?:com|de|fr|it|co\.uk)|(?:ymail|rocketmail|aim)\.com)|(?<microsoft>(?:outlook|hotmail|live)\.(?:com|[a-z]{2}|com?\.[a-z]{2})|msn\.com))$/;

/** `domain`: in lower case. Null: of none of them. */
export function mailboxProviderOf(domain: string): MailboxProvider | null {
  const { groups } = personal.exec(domain) ?? {};
  return groups ? mailboxProviders.find((one) => groups[one] !== undefined)! : null;
}

/**
 * The demands of the providers of personal mailboxes on senders, as of 2026: "Email sender guidelines" and their FAQ (Google),
 * "Sender Best Practices" and their FAQ (Yahoo Sender Hub), "Outlook's New Requirements for High-Volume Senders" and the
 * policies of Outlook.com Postmaster (Microsoft). The table is in docs/deliverability.md.
 */
import { type MailboxProvider, mailboxProviders } from '#platform/values/mailbox-provider.ts';

/**
 * From as many recipients in a day on. Google and Microsoft count a registered domain and all below it, and Google never forgets
 * it; Yahoo names no number.
 */
export const bulkPerDay = 5_000;

/** Google: "close to 5,000 messages or more". */
const nearPerDay = 4_000;

export type Standing = 'bulk' | 'near' | 'small';

/** `most`: recipients in a day. */
export function standingOf(most: number): Standing {
  if (most >= bulkPerDay) return 'bulk';
  return most >= nearPerDay ? 'near' : 'small';
}

/** Asked of all senders, of bulk senders, or only recommended. */
type Asked = 'all' | 'bulk' | 'advice';

interface Rule {
  title: string;
  /** The operator of the server has to meet it. */
  isServers: boolean;
  askedBy: Partial<Record<MailboxProvider, Asked>>;
}

const rule = (title: string, askedBy: Rule['askedBy'], isServers = false): Rule => ({
  title,
  askedBy,
  isServers,
});

export const senderRules = {
  spf: rule('SPF', { gmail: 'bulk', yahoo: 'bulk', microsoft: 'bulk' }, true),
  dkim: rule('DKIM', { gmail: 'all', yahoo: 'all', microsoft: 'bulk' }),
  dmarc: rule('DMARC, aligned', { gmail: 'bulk', yahoo: 'bulk', microsoft: 'bulk' }),
  ptr: rule('Reverse DNS', { gmail: 'all', yahoo: 'all', microsoft: 'all' }, true),
  tls: rule('TLS', { gmail: 'all' }, true),
  oneClick: rule('One-click unsubscribe', { gmail: 'bulk', yahoo: 'bulk', microsoft: 'advice' }),
  complaints: rule('Complaints below 0.3%', { gmail: 'all', yahoo: 'all', microsoft: 'advice' }),
  from: rule('A From that takes replies', { gmail: 'advice', yahoo: 'advice', microsoft: 'bulk' }),
} as const satisfies Record<string, Rule>;

export type RuleName = keyof typeof senderRules;

export const demands = Object.keys(senderRules) as RuleName[];

export type Standings = Record<MailboxProvider, Standing>;

/** The providers that demand it of a sender of this standing with them. */
export function askingProviders(demand: RuleName, standings: Standings): MailboxProvider[] {
  const { askedBy }: Rule = senderRules[demand];
  return mailboxProviders.filter((one) => {
    const asked = askedBy[one];
    return asked === 'all' || (asked === 'bulk' && standings[one] !== 'small');
  });
}

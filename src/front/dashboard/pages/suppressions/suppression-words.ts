/** The reason of a suppression in words. */
import { capital } from '#platform/base/capital.ts';

/** How the reason that a bounce leaves begins (mail/deliver/transition.ts). */
const bounce = 'hard bounce: ';

/** In few words, and in a sentence. */
const categories: Record<string, [short: string, said: string]> = {
  unknown_user: ['no such mailbox', 'the server says that the mailbox does not exist'],
  mailbox_disabled: ['the mailbox is disabled', 'the server says that the mailbox is disabled'],
  dns: ['no such domain', 'the domain does not exist or accepts no mail'],
  protocol: ['the address is not accepted', 'the server does not accept this form of address'],
};

export interface Why {
  tone: 'bad' | 'warn' | 'quiet';
  badge: string;
  /** Beside the badge; empty if that says it. */
  short: string;
  text: string;
  /** An email caused it, by a bounce or a complaint. */
  isByEmail: boolean;
}

export function whyOf(reason: string): Why {
  if (reason.startsWith(bounce)) {
    const category = reason.slice(bounce.length);
    const words = category.replaceAll('_', ' ');
    const [short, said] = categories[category] ?? [words, `the server rejected it permanently (${words})`];
    return {
      tone: 'bad',
      badge: 'Bounced',
      short: `Hard bounce: ${short}`,
      text: `Mail to this address bounced permanently: ${said}.`,
      isByEmail: true,
    };
  }
  if (reason.startsWith('soft bounce'))
    return {
      tone: 'bad',
      badge: 'Bounced',
      short: capital(reason.replaceAll('_', ' ')),
      text: `Mail to this address kept bouncing: ${reason.replaceAll('_', ' ')}.`,
      isByEmail: true,
    };
  if (reason === 'complaint')
    return {
      tone: 'warn',
      badge: 'Complained',
      short: '',
      text: 'The recipient reported your mail as spam, and the mailbox provider told us.',
      isByEmail: true,
    };
  if (reason === 'unsubscribed') return plain('Unsubscribed', 'The recipient unsubscribed from the stream.');
  if (reason === 'imported') return plain('Imported', 'The address was imported with a list.');
  if (reason === 'manual') return plain('Manual', 'The address was added manually.');
  return plain('Manual', `The address was added manually, with the reason: ${reason}`, reason);
}

function plain(badge: string, text: string, short = ''): Why {
  return { tone: 'quiet', badge, short, text, isByEmail: false };
}

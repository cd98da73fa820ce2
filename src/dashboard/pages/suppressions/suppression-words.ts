/** The reason of a suppression in words. */

/** How the reason that a bounce leaves begins (rules/transition.ts). */
const bounce = 'hard bounce: ';

const categories: Record<string, string> = {
  unknown_user: 'the server says that the mailbox does not exist',
  mailbox_disabled: 'the server says that the mailbox is disabled',
  dns: 'the domain does not exist or accepts no mail',
  protocol: 'the server does not accept this form of address',
};

export interface Why {
  tone: 'bad' | 'warn' | 'quiet';
  badge: string;
  text: string;
  /** An email caused it, by a bounce or a complaint. */
  isByEmail: boolean;
}

export function whyOf(reason: string): Why {
  if (reason.startsWith(bounce)) {
    const category = reason.slice(bounce.length);
    const said =
      categories[category] ?? `the server rejected it permanently (${category.replaceAll('_', ' ')})`;
    return {
      tone: 'bad',
      badge: 'Bounced',
      text: `Mail to this address bounced permanently: ${said}.`,
      isByEmail: true,
    };
  }
  if (reason.startsWith('soft bounce'))
    return {
      tone: 'bad',
      badge: 'Bounced',
      text: `Mail to this address kept bouncing: ${reason.replaceAll('_', ' ')}.`,
      isByEmail: true,
    };
  if (reason === 'complaint')
    return {
      tone: 'warn',
      badge: 'Complained',
      text: 'The recipient reported your mail as spam, and the mailbox provider told us.',
      isByEmail: true,
    };
  if (reason === 'imported') return plain('Imported', 'The address was imported with a list.');
  if (reason === 'manual') return plain('Manual', 'The address was added manually.');
  return plain('Manual', `The address was added manually, with the reason: ${reason}`);
}

function plain(badge: string, text: string): Why {
  return { tone: 'quiet', badge, text, isByEmail: false };
}

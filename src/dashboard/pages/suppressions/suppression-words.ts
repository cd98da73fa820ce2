/** Why an address is not written to, in words. */

/** What a bounce or a complaint left as the reason begins so (record/transition.ts). */
const bounce = 'hard bounce: ';

const categories: Record<string, string> = {
  unknown_user: 'its server says that there is no such mailbox',
  mailbox_disabled: 'its server says that the mailbox is disabled',
  dns: 'its domain is not there, or takes no mail',
  protocol: 'its server does not take such an address',
};

export interface Why {
  tone: 'bad' | 'warn' | 'quiet';
  badge: string;
  text: string;
  /** Whether an email is the cause. */
  isByEmail: boolean;
}

export function whyOf(reason: string): Why {
  if (reason.startsWith(bounce)) {
    const category = reason.slice(bounce.length);
    const said = categories[category] ?? `its server refused for good: ${category.replaceAll('_', ' ')}`;
    return { tone: 'bad', badge: 'Bounced', text: `Mail to it bounced for good: ${said}.`, isByEmail: true };
  }
  if (reason === 'complaint')
    return {
      tone: 'warn',
      badge: 'Complained',
      text: 'Its reader has called your mail spam, and the mailbox provider has told us.',
      isByEmail: true,
    };
  if (reason === 'imported') return plain('Imported', 'It came with an import of a list.');
  if (reason === 'manual') return plain('By hand', 'Somebody put it on the list.');
  return plain('By hand', `Somebody put it on the list, and said: ${reason}`);
}

function plain(badge: string, text: string): Why {
  return { tone: 'quiet', badge, text, isByEmail: false };
}

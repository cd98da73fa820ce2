/**
 * Mail from this server to users of its dashboard. It is accepted like any mail, and sent from the domain of POSTERN_NOTICES_FROM,
 * but belongs to the server: the organization that has the domain neither pays for it nor sees, stops or suppresses it.
 */

import { findVerifiedOwner } from '#accounts/rows/domains-table.ts';
import { addServerOrganization } from '#accounts/rows/organizations.ts';
import { escapeHtml, sanitize } from '#platform/base/sanitize.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { headerOf } from '#platform/values/address.ts';
import { type Mailbox, serverOrgId } from '#platform/values/glossary.ts';
import { type Recipient, recipientsOf, withoutName } from '#platform/values/recipients.ts';

/** A paragraph: text of any origin, a command to copy, or the URL of a page. */
export type Paragraph = { head: string } | { text: string } | { command: string } | { url: string };

export interface ServerMail {
  to: string[];
  subject: string;
  content: Paragraph[];
  /** If it has not been delivered after this many seconds, it is dropped. */
  expiresAfter: number;
}

export interface ServerMailer {
  /** Whether an organization has the sender's domain, verified. */
  isReady(): Promise<boolean>;
  /** False: it is not ready. Rejects if the mail cannot be accepted. */
  send(mail: ServerMail): Promise<boolean>;
}

export interface ServerMailParts {
  db: Db;
  /** POSTERN_MTA_MAX_AGE */
  maxAgeMs: number;
  sender: Mailbox;
  /** accept.ts */
  accept(request: AcceptedMail, caller: Server): Promise<unknown>;
}

interface Server {
  orgId: string;
  keyId: null;
  scopes: [];
  domainOrgId: string;
}

interface AcceptedMail {
  recipients: Recipient[];
  from: string;
  subject: string;
  text: string;
  html: string;
  attachments: [];
  headers: Record<string, string>;
  tags: Record<string, string>;
  tracking: { openTracking: boolean; clickTracking: boolean };
  idempotency: null;
  expiresAfter: number;
  requestId: string;
}

export function createServerMailer({ db, maxAgeMs, sender, accept }: ServerMailParts): ServerMailer {
  const findOwner = () => findVerifiedOwner(db, sender.domain);
  const send = async ({ to, subject, content, expiresAfter }: ServerMail) => {
    const domainOrgId = await findOwner();
    if (domainOrgId === null) return false;
    const request: AcceptedMail = {
      recipients: recipientsOf({ to: to.map(withoutName) }),
      from: headerOf({ ...sender, name: sender.name || 'Postern' }),
      subject: oneLine(subject).slice(0, maxSubject),
      text: textOf(content),
      html: htmlOf(content),
      attachments: [],
      // RFC 3834: no automatic reply is wanted.
      headers: { 'Auto-Submitted': 'auto-generated' },
      tags: {},
      tracking: { openTracking: false, clickTracking: false },
      idempotency: null,
      expiresAfter: Math.min(expiresAfter, maxAgeMs / 1000),
      requestId: 'server-mail',
    };
    await addServerOrganization(db);
    await accept(request, { orgId: serverOrgId, keyId: null, scopes: [], domainOrgId });
    return true;
  };
  return { isReady: async () => (await findOwner()) !== null, send };
}

const maxSubject = 200;

/** Texts may be a stranger's, such as the reply of a mail server. */
const oneLine = (text: string) => sanitize(text.replaceAll(/\s+/g, ' '));

function textOf(content: Paragraph[]): string {
  const lines = content.map((one) => {
    if ('head' in one) return oneLine(one.head);
    if ('text' in one) return oneLine(one.text);
    return `    ${oneLine('command' in one ? one.command : one.url)}`;
  });
  return `${lines.join('\n\n')}\n`;
}

function htmlOf(content: Paragraph[]): string {
  const parts = content.map((one) => {
    if ('head' in one) return `<h2 style="font-size: 17px">${escapeHtml(oneLine(one.head))}</h2>`;
    if ('text' in one) return `<p>${escapeHtml(oneLine(one.text))}</p>`;
    if ('command' in one) return `<p><code>${escapeHtml(oneLine(one.command))}</code></p>`;
    const url = escapeHtml(oneLine(one.url));
    return `<p><a href="${url}">${url}</a></p>`;
  });
  return `<!doctype html>
<html lang="en">
<body style="font-family: sans-serif; line-height: 1.5">
${parts.join('\n')}
</body>
</html>
`;
}

/** The text of a notice: the problems that need action, each with the command or the page for it, and those that are solved. */

import type { NoticeChange } from '#accounts/rows/notices.ts';
import type { Need } from '#operate/status/need.ts';
import { capital } from '#platform/base/capital.ts';
import { utcMinute } from '#platform/base/clock.ts';
import type { Paragraph, ServerMail } from './server-mail.ts';

/** A problem that has begun or is solved. */
export interface Told extends NoticeChange {
  /** Null: it is solved. */
  need: Need | null;
}

const daySeconds = 86_400;

interface Server {
  hostname: string;
  baseUrl: string;
}

export function noticeMail(told: Told[], { hostname, baseUrl }: Server): Omit<ServerMail, 'to'> {
  const open = told.filter(({ isOpen }) => isOpen);
  const solved = told.filter(({ isOpen }) => !isOpen);
  const counts = [
    open.length > 0 && `${open.length} ${open.length === 1 ? 'problem needs' : 'problems need'} action`,
    solved.length > 0 && `${solved.length} ${solved.length === 1 ? 'problem' : 'problems'} solved`,
  ].filter((text) => text !== false);
  const [first] = [...open, ...solved];
  const others = told.length === 1 ? '' : `, and ${told.length - 1} more`;
  return {
    subject: `${open.length === 0 ? 'Solved: ' : ''}${titleOf(first!)}${others}`,
    content: [
      { text: `Postern on ${hostname}: ${counts.join(', ')}.` },
      ...open.flatMap((one) => [
        { head: titleOf(one) },
        ...detailsOf(one.need!),
        { url: pageOf(one, baseUrl) },
      ]),
      ...solved.flatMap((one) => [{ head: `Solved: ${titleOf(one)}` }, { url: pageOf(one, baseUrl) }]),
    ],
    expiresAfter: daySeconds,
  };
}

const titleOf = ({ entry }: Told) => `${entry.subject}: ${entry.label}`;

const pageOf = ({ entry }: Told, baseUrl: string) => `${baseUrl}/dashboard${entry.path}`;

const maxReply = 300;

/** The words of a stranger's host: mail programs make links of URLs and of names. */
const withoutLinks = (text: string) =>
  text.replaceAll('://', ':[//]').replace(/(?<=\w)[.@](?=[a-z]{2})/gi, '[$&]');

function detailsOf({ figure, since, reply, advice, command, orgId }: Need): Paragraph[] {
  const begun = since === null ? '' : `, since ${utcMinute(since)}`;
  return [
    { text: `${capital(figure)}${begun}.` },
    ...(reply ? [{ text: `The answer was: ${withoutLinks(reply.slice(0, maxReply))}` }] : []),
    { text: advice },
    // Owners have no command line.
    ...(command !== '' && orgId === undefined ? [{ command }] : []),
  ];
}

/**
 * Returned mail: some recipients' hosts send a bounce or a complaint later, to the return path of the mail that they have taken.
 * They try again until they get 250 or a permanent refusal, as a mail server does. By the local part of the recipient.
 */
import type { Book } from '../book.ts';
import type { Network } from '../machine/network.ts';
import { type Machine, scheduler } from '../machine/scheduler.ts';
import type { Random } from '../random.ts';
import { submitMail } from './smtp-call.ts';

export interface TakenMail {
  mail: number;
  returnPath: string;
  messageId: string;
  recipient: string;
}

interface ReturnerParts {
  network: Network;
  book: Book;
  random: Random;
  machine: Machine;
  /** The host of return paths. */
  target: string;
}

const endings = { '-bounces': 'bounce', '-complains': 'complaint' } as const;

const retryMs = 2 * 60_000;
const maxTries = 60;

export class Returner {
  readonly #parts: ReturnerParts;

  constructor(parts: ReturnerParts) {
    this.#parts = parts;
  }

  noteTaken(taken: TakenMail): void {
    const { random, machine, book } = this.#parts;
    const local = taken.recipient.slice(0, taken.recipient.indexOf('@'));
    const ending = (Object.keys(endings) as (keyof typeof endings)[]).find((one) => local.endsWith(one));
    if (!ending) return;
    const kind = endings[ending];
    const returned = {
      mail: taken.mail,
      recipient: taken.recipient,
      messageId: taken.messageId,
      kind,
      takenAt: null,
    };
    book.returned.push(returned);
    const message = kind === 'bounce' ? bounceOf(taken) : complaintOf(taken);
    const waitMs = random.exponential(random.pick([100, 60_000, 20 * 60_000]));
    scheduler.after(waitMs, () => this.#try(returned, [taken.returnPath, message], 1), machine);
  }

  #try(returned: Book['returned'][number], [returnPath, message]: [string, string], tries: number): void {
    const { network, machine, book, target } = this.#parts;
    book.submissions += 1;
    book.tell(
      returned.mail,
      `a ${returned.kind} of ${returned.recipient} is sent to the return path, try ${tries}`,
    );
    submitMail(network, [machine, target], { from: '', to: returnPath, message }, (reply) => {
      book.tell(returned.mail, `that is answered ${reply ?? 'with nothing'}`);
      if (reply?.startsWith('250')) returned.takenAt = scheduler.time;
      else if (tries < maxTries && !reply?.startsWith('5'))
        scheduler.after(retryMs, () => this.#try(returned, [returnPath, message], tries + 1), machine);
    });
  }
}

function report(kind: string, { recipient, messageId, returnPath }: TakenMail, lines: string[]): string {
  return [
    `From: Mail Delivery System <mailer-daemon@${recipient.split('@')[1]}>`,
    `To: <${returnPath}>`,
    'Subject: Report',
    'MIME-Version: 1.0',
    `Content-Type: multipart/report; report-type=${kind}; boundary="b"`,
    '',
    '--b',
    'Content-Type: text/plain',
    '',
    'A report about a mail.',
    '--b',
    `Content-Type: message/${kind}`,
    '',
    ...lines,
    '',
    '--b',
    'Content-Type: message/rfc822',
    '',
    `Message-ID: ${messageId}`,
    `To: <${recipient}>`,
    '',
    '--b--',
  ].join('\r\n');
}

const bounceOf = (taken: TakenMail) =>
  report('delivery-status', taken, [
    'Reporting-MTA: dns; there.example',
    '',
    `Final-Recipient: rfc822; ${taken.recipient}`,
    'Action: failed',
    'Status: 5.1.1',
    'Diagnostic-Code: smtp; 550 5.1.1 User unknown',
  ]);

const complaintOf = (taken: TakenMail) =>
  report('feedback-report', taken, [
    'Feedback-Type: abuse',
    'User-Agent: Simulated/1',
    'Version: 1',
    `Original-Rcpt-To: ${taken.recipient}`,
  ]);

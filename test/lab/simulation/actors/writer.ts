/** Somebody elsewhere who writes to the addresses of the organizations; their host tries again until it gets 250 or a 5xx. */
import type { Book, ReceivedMail } from '../book.ts';
import type { Network } from '../machine/network.ts';
import { newMachine, scheduler } from '../machine/scheduler.ts';
import type { Random } from '../random.ts';
import { submitMail } from './smtp-call.ts';
import type { Tenant } from './tenants.ts';

interface WriterParts {
  network: Network;
  book: Book;
  random: Random;
  target: string;
}

const retryMs = 2 * 60_000;
const maxTries = 60;
const domain = 'writer.example';

export class Writer {
  readonly machine = newMachine(domain);
  readonly #parts: WriterParts;

  constructor(parts: WriterParts) {
    this.#parts = parts;
    parts.network.attach(this.machine, '4.0.0.1');
  }

  send(tenant: Tenant): void {
    const { book } = this.#parts;
    const number = book.received.length;
    const mail = { messageId: `in${number}@${domain}`, org: tenant.number, takenAt: null, doubts: 0 };
    book.received.push(mail);
    const to = `box${number}@${tenant.domain}`;
    const fields = [
      `From: <ann@${domain}>`,
      `To: <${to}>`,
      `Subject: To ${number}`,
      `Message-ID: <${mail.messageId}>`,
    ];
    const message = [...fields, '', 'Hello'].join('\r\n');
    this.#try(mail, { from: `ann@${domain}`, to, message }, 1);
  }

  #try(mail: ReceivedMail, submission: Parameters<typeof submitMail>[2], tries: number): void {
    const { network, book, random, target } = this.#parts;
    book.submissions += 1;
    book.tell(-1, `${mail.messageId} is written to ${submission.to}, try ${tries}`);
    submitMail(network, [this.machine, target], submission, (reply, isInDoubt) => {
      book.tell(-1, `${mail.messageId} is answered ${reply ?? 'with nothing'}`);
      if (isInDoubt) mail.doubts += 1;
      if (reply?.startsWith('250')) mail.takenAt = scheduler.time;
      else if (tries < maxTries && !reply?.startsWith('5'))
        scheduler.after(
          retryMs * random.between(0.5, 1),
          () => this.#try(mail, submission, tries + 1),
          this.machine,
        );
    });
  }
}

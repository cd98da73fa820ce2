/**
 * An application that sends mail through the API, as a careful one does: it repeats a call whose answer did not arrive if the
 * call has an idempotency key, waits when it is told to, and gives up after some tries. It also cancels and reschedules.
 */
import type { Book, Mail } from '../book.ts';
import type { Network } from '../machine/network.ts';
import { type Machine, newMachine, scheduler } from '../machine/scheduler.ts';
import type { Random } from '../random.ts';
import { callHttp, type HttpAnswer } from './http-call.ts';
import type { Tenant } from './tenants.ts';

export interface Wanted {
  recipients: string[];
  subject: string;
  key: string | null;
  scheduledAt: number | null;
  expiresAfterS: number | null;
}

export interface CallerParts {
  network: Network;
  book: Book;
  tenant: Tenant;
  random: Random;
  /** Where the API is now. */
  target(): [address: string, port: number];
}

const maxTries = 8;

export class Caller {
  readonly machine: Machine;
  readonly #parts: CallerParts;

  constructor(parts: CallerParts) {
    this.#parts = parts;
    this.machine = newMachine(`caller ${parts.tenant.number}`);
    parts.network.attach(this.machine, `7.0.0.${parts.tenant.number + 1}`);
  }

  send(wanted: Wanted): Mail {
    const { book, tenant } = this.#parts;
    const mail: Mail = {
      number: book.mails.length,
      org: tenant.number,
      recipients: wanted.recipients,
      key: wanted.key,
      scheduledAt: wanted.scheduledAt,
      expiresAfterS: wanted.expiresAfterS,
      wantedAt: scheduler.time,
      answer: null,
      wasRefused: false,
      doubts: 0,
      isChanged: false,
      canceled: [],
      canceledAt: null,
      repeats: [],
    };
    book.mails.push(mail);
    const body = this.#bodyOf(mail, wanted);
    this.#try(mail, body, 1);
    return mail;
  }

  #try(mail: Mail, body: string, tries: number): void {
    const { book, random } = this.#parts;
    book.tell(mail.number, `the caller calls, try ${tries}`);
    this.#call('POST', '/send', body, (answer, wasSent) => {
      if (answer?.status === 200) {
        const { emailId, accepted } = JSON.parse(answer.body);
        return book.noteAnswer(mail, { status: 200, emailId, accepted, at: scheduler.time });
      }
      if (answer)
        book.noteAnswer(mail, { status: answer.status, emailId: null, accepted: [], at: scheduler.time });
      else {
        book.tell(mail.number, 'no answer');
        if (wasSent) {
          mail.doubts += 1;
          book.unanswered.push({ mail: mail.number, at: scheduler.now });
        }
      }
      const isSafe = mail.key !== null || answer !== null || !wasSent;
      const mayPass = !answer || answer.status === 429 || answer.status >= 500;
      if (!isSafe || !mayPass || tries === maxTries) return;
      const waitMs = (answer?.retryAfterS ?? 0) * 1000 + random.exponential(500 * 2 ** tries);
      scheduler.after(waitMs, () => this.#try(mail, body, tries + 1), this.machine);
    });
  }

  /** The same call again, although the first was answered: it must not send a second mail. */
  repeat(mail: Mail, wanted: Wanted): void {
    if (!mail.answer) return;
    this.#call('POST', '/send', this.#bodyOf(mail, wanted), (answer) => {
      if (answer?.status !== 200) return;
      const { emailId } = JSON.parse(answer.body);
      this.#parts.book.tell(mail.number, `a repeated call is answered with ${emailId}`);
      mail.repeats.push(emailId);
    });
  }

  #bodyOf(mail: Mail, wanted: Wanted): string {
    return JSON.stringify({
      from: `Sender <sender@${this.#parts.tenant.domain}>`,
      to: wanted.recipients,
      subject: wanted.subject,
      text: `Mail ${mail.number}`,
      headers: { 'X-Mail': String(mail.number) },
      ...(wanted.key && { idempotencyKey: wanted.key }),
      ...(wanted.scheduledAt && { scheduledAt: new Date(wanted.scheduledAt).toISOString() }),
      ...(wanted.expiresAfterS && { expiresAfter: wanted.expiresAfterS }),
    });
  }

  cancel(mail: Mail): void {
    if (!mail.answer?.emailId) return;
    const { book } = this.#parts;
    mail.isChanged = true;
    book.tell(mail.number, 'the caller cancels it');
    this.#call('POST', `/${mail.answer.emailId}/cancel`, '', (answer) => {
      if (answer?.status === 200) {
        mail.canceled = JSON.parse(answer.body).canceled ?? [];
        mail.canceledAt ??= scheduler.time;
      }
      book.tell(mail.number, `canceling is answered ${answer?.status}: ${mail.canceled.join(' ')}`);
    });
  }

  reschedule(mail: Mail, at: number): void {
    if (!mail.answer?.emailId) return;
    const { book } = this.#parts;
    mail.isChanged = true;
    const body = JSON.stringify({ scheduledAt: new Date(at).toISOString() });
    book.tell(mail.number, `the caller moves it to ${new Date(at).toISOString()}`);
    this.#call('PATCH', `/${mail.answer.emailId}`, body, (answer) => {
      if (answer?.status === 200) mail.scheduledAt = at;
      book.tell(mail.number, `moving it is answered ${answer?.status}`);
    });
  }

  #call(
    method: string,
    path: string,
    body: string,
    answered: (answer: HttpAnswer | null, wasSent: boolean) => void,
  ): void {
    const { network, tenant, target, book } = this.#parts;
    book.calls += 1;
    const headers = { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' };
    callHttp(
      network,
      [this.machine, ...target()],
      { method, path: `/api/public/email${path}`, headers, body },
      answered,
    );
  }
}

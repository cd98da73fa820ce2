/**
 * What really happened, as the actors saw it: the mails that callers wanted to send and the answers they got, the copies that
 * hosts took, the webhooks that endpoints got. The invariants compare the server's records with it.
 */
import { hash } from 'node:crypto';
import { type Machine, scheduler } from './machine/scheduler.ts';

export interface Answer {
  status: number;
  emailId: string | null;
  accepted: string[];
  at: number;
}

/** One mail that a caller wants to send, once. */
export interface Mail {
  number: number;
  org: number;
  recipients: string[];
  /** The API's idempotency key; null: none. */
  key: string | null;
  scheduledAt: number | null;
  expiresAfterS: number | null;
  /** The true time of the first call. */
  wantedAt: number;
  /** The first 200; null: none arrived. */
  answer: Answer | null;
  /** A call was answered, and not with 200. */
  wasRefused: boolean;
  /** Calls that may have been heard, and whose answer did not arrive. */
  doubts: number;
  /** A cancellation or a change of time was asked for. */
  isChanged: boolean;
  canceled: string[];
  canceledAt: number | null;
  /** The emailIds of calls that were repeated with the same key. */
  repeats: string[];
}

/** A copy that a host has taken: it has sent 250, or was about to. */
export interface Copy {
  mail: number;
  messageId: string;
  recipient: string;
  host: string;
  at: number;
  /** The host hung up, or its reply was lost on the way. */
  isDoubtful: boolean;
}

export interface WebhookPost {
  endpoint: string;
  eventId: string;
  emailId: string;
  type: string;
  recipient: string;
  at: number;
  /** The endpoint answered 2xx. */
  isTaken: boolean;
}

/** A bounce or a complaint that a host sends to a return path. */
export interface Returned {
  mail: number;
  recipient: string;
  messageId: string;
  kind: 'bounce' | 'complaint';
  /** When it was answered with 250. */
  takenAt: number | null;
}

/** A mail that somebody elsewhere writes to an organization. */
export interface ReceivedMail {
  messageId: string;
  org: number;
  /** When it was answered with 250. */
  takenAt: number | null;
  /** Tries that may have arrived, although no reply came back. */
  doubts: number;
}

export interface StoryLine {
  at: number;
  text: string;
}

export class Book {
  readonly mails: Mail[] = [];
  readonly byEmailId = new Map<string, Mail>();
  readonly copies = new Map<string, Copy[]>();
  /** When a host of each recipients' domain last took a mail and could say so; by the scheduler's clock. */
  readonly takenAt = new Map<string, number>();
  readonly posts: WebhookPost[] = [];
  readonly returned: Returned[] = [];
  readonly received: ReceivedMail[] = [];
  /** Calls that were sent and got no answer; `at`: by the scheduler's clock. */
  readonly unanswered: { mail: number; at: number }[] = [];
  /** Two nodes that sent the same delivery at a time. */
  readonly overlaps: string[] = [];
  readonly #offers = new Map<string, Machine[]>();
  /** Calls to the API. */
  calls = 0;
  /** Tries to submit a mail to port 25 of the service. */
  submissions = 0;
  /** By mail; those of all mails under -1. */
  readonly #stories = new Map<number, StoryLine[]>();

  tell(mail: number, text: string): void {
    const lines = this.#stories.get(mail) ?? [];
    this.#stories.set(mail, lines);
    lines.push({ at: scheduler.time, text: shortened(text) });
  }

  /** Of all that was told: ids, times and words. */
  hash(): string {
    return hash('sha256', JSON.stringify([...this.#stories]));
  }

  storyOf(mail: number): StoryLine[] {
    const own = this.#stories.get(mail) ?? [];
    const ofAll = mail === -1 ? [] : (this.#stories.get(-1) ?? []);
    return [...own, ...ofAll].sort((a, b) => a.at - b.at);
  }

  copiesOf(mail: number, recipient: string): Copy[] {
    return this.copies.get(`${mail} ${recipient}`) ?? [];
  }

  noteCopy(copy: Copy): void {
    const key = `${copy.mail} ${copy.recipient}`;
    this.copies.set(key, [...(this.copies.get(key) ?? []), copy]);
    if (!copy.isDoubtful) this.takenAt.set(copy.host.slice(copy.host.indexOf('.') + 1), scheduler.now);
    this.tell(
      copy.mail,
      `${copy.host} takes it for ${copy.recipient}${copy.isDoubtful ? ', and its 250 is lost' : ''}`,
    );
  }

  /** A client offers a mail for the recipient; the function that is returned ends that. */
  noteOffer(recipient: string, client: Machine): () => void {
    const clients = this.#offers.get(recipient) ?? [];
    this.#offers.set(recipient, clients);
    const other = clients.find((one) => one !== client && one.isAlive);
    // Alerts have the same recipient again and again.
    if (other && !recipient.startsWith('alert'))
      this.overlaps.push(`${client.name} offers the mail for ${recipient}, which ${other.name} is sending`);
    clients.push(client);
    return () => void clients.splice(clients.indexOf(client), 1);
  }

  noteAnswer(mail: Mail, answer: Answer): void {
    this.tell(
      mail.number,
      `the caller gets ${answer.status} ${answer.emailId ?? ''} accepted: ${answer.accepted.join(' ')}`,
    );
    if (answer.status !== 200) mail.wasRefused = true;
    if (answer.status !== 200 || mail.answer) return;
    mail.answer = answer;
    if (answer.emailId && !this.byEmailId.has(answer.emailId)) this.byEmailId.set(answer.emailId, mail);
  }
}

/** Statements are long, and say little in a story. */
function shortened(text: string): string {
  const line = text.replace(/\s+/g, ' ');
  return line.length > 240 ? `${line.slice(0, 150)} … ${line.slice(-80)}` : line;
}

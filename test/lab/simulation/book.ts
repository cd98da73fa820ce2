/**
 * What really happened, as the actors saw it: the mails that callers wanted to send and the answers they got, the copies that
 * hosts took, the webhooks that endpoints got. The invariants compare the server's records with it.
 */
import { scheduler } from './scheduler.ts';

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

export interface StoryLine {
  at: number;
  text: string;
}

export class Book {
  readonly mails: Mail[] = [];
  readonly byEmailId = new Map<string, Mail>();
  readonly copies = new Map<string, Copy[]>();
  readonly posts: WebhookPost[] = [];
  readonly returned: Returned[] = [];
  /** Calls that were sent and got no answer; `at`: by the scheduler's clock. */
  readonly unanswered: { mail: number; at: number }[] = [];
  /** Calls to the API. */
  calls = 0;
  /** By mail; those of all mails under -1. */
  readonly #stories = new Map<number, StoryLine[]>();

  tell(mail: number, text: string): void {
    const lines = this.#stories.get(mail) ?? [];
    this.#stories.set(mail, lines);
    lines.push({ at: scheduler.time, text: shortened(text) });
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
    this.tell(
      copy.mail,
      `${copy.host} takes it for ${copy.recipient}${copy.isDoubtful ? ', and its 250 is lost' : ''}`,
    );
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

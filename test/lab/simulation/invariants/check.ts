/** What an invariant is: a function of what the actors saw, the rows of the database, and how calm it is. */
import type { Status } from '#operate/status/read-status.ts';
import type { Scene } from '../scene.ts';
import type { Rows } from './rows.ts';

export interface Finding {
  text: string;
  /** The number of the mail concerned. */
  mail?: number | undefined;
  /** Or its email's id. */
  emailId?: string | null;
}

/** A fault or an order; its times are those of the scheduler. */
export interface HappenedFault {
  name: string;
  /** The recipients' domain that it is about; null: several, or none. */
  domain: string | null;
  begunAt: number;
  /** Null: it lasts. */
  endedAt: number | null;
}

export interface Checked {
  scene: Scene;
  rows: Rows;
  /** For how long nothing has been wrong around the service, and it has been up; 0: something is. */
  calmMs: number;
  /** For how long the machine of the service has been in order, whatever is wrong around it. */
  wellMs: number;
  /** The clock was wrong at some time. */
  isClockMoved: boolean;
  faults: HappenedFault[];
  /** A fault or an order of one of these kinds has happened. */
  hasHappened(...names: string[]): boolean;
  /** For how long a fault of this kind has lasted; 0: none does. */
  openForMs(name: string): number;
  /** What has happened in the last simulated minute. */
  minute: Minute;
  /** Of `postern status`; null: it was not asked for. */
  status: Status | null;
}

/** What has happened since the last check. */
export interface Minute {
  statements: number;
  commits: number;
  /** What makes work: calls, SMTP sessions, posts of webhooks, questions to DNS, returned mail, failures of the disk. */
  causes: number;
  /** Starts of the service. */
  starts: number;
  minutes: number;
  sleeps: number;
  /** How long the service was awake. */
  awakeMinutes: number;
}

export type Check = (checked: Checked) => Finding | null;

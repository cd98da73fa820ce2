/**
 * The promises of the service, each a named function (invariants/), and when they are checked: those of `always` each simulated
 * minute, those of `atEnd` when everything is settled. A check gets what the actors saw (the book), the rows of the database,
 * and how calm it is; it returns what is wrong, or null.
 */

import type { Status } from '#operate/status/read-status.ts';
import { ownFaults } from './faults.ts';
import { acceptance } from './invariants/acceptance.ts';
import type { Check, Finding, HappenedFault, Minute } from './invariants/check.ts';
import { cost } from './invariants/cost.ts';
import { deliveries, deliveriesAtEnd } from './invariants/deliveries.ts';
import { received } from './invariants/received.ts';
import { returned } from './invariants/returned.ts';
import { status } from './invariants/status.ts';
import { webhooks, webhooksAtEnd } from './invariants/webhooks.ts';
import { databases } from './machine/database.ts';
import { type Machine, scheduler } from './machine/scheduler.ts';
import type { Scene } from './scene.ts';

export interface Failure extends Finding {
  invariant: string;
  /** The true time. */
  at: number;
}

const always: Record<string, Check> = {
  ...acceptance,
  ...deliveries,
  ...returned,
  ...received,
  ...webhooks,
  ...cost,
  ...status,
};
const atEnd: Record<string, Check> = { ...deliveriesAtEnd, ...webhooksAtEnd };

export class Invariants {
  failure: Failure | null = null;
  /** All faults and orders, in the order of their begin. */
  readonly faults: HappenedFault[] = [];
  /** Nothing has happened since the last check. */
  isQuiet = false;
  readonly #scene: Scene;
  #calmSince = 0;
  /** The machine of the service has been in order. */
  #wellSince = 0;
  #counted: Minute = {
    statements: 0,
    commits: 0,
    causes: 0,
    starts: 0,
    minutes: 0,
    sleeps: 0,
    awakeMinutes: 0,
  };

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  /** The function that is returned notes its end. */
  noteFault(name: string, domain: string | null, lasts: boolean): () => void {
    const fault: HappenedFault = { name, domain, begunAt: scheduler.now, endedAt: null };
    this.faults.push(fault);
    const noteChange = () => {
      this.#calmSince = scheduler.now;
      if (ownFaults.has(name)) this.#wellSince = scheduler.now;
    };
    const end = () => {
      fault.endedAt = scheduler.now;
      noteChange();
    };
    if (lasts) noteChange();
    else end();
    return end;
  }

  /** Code of the service threw, and nobody caught it: the process would end. */
  noteCrash(machine: Machine, error: unknown): void {
    const text = `${machine.name}: ${error instanceof Error ? error.stack : String(error)}`;
    this.#fail('theProcessNeverEndsByItself', { text });
  }

  /** So much happens that the virtual time hardly goes on: the run would never end. */
  noteEndless(count: number): void {
    this.#fail('noWorkMakesMoreWork', { text: `${count} events, and the next look is not due` });
  }

  isSettled(): boolean {
    if (!this.#scene.isUp) return false;
    const rows = this.#scene.rows();
    return rows !== null && rows.unfinished() === 0 && rows.openWebhookMessages() === 0;
  }

  /** `status`: what `postern status` says, if it was asked. */
  check(checks: Record<string, Check>, status: Status | null = null): void {
    const { isUp } = this.#scene;
    const open = this.faults.filter(({ endedAt }) => endedAt === null);
    if (!isUp || open.length > 0) this.#calmSince = scheduler.now;
    if (!isUp || open.some(({ name }) => ownFaults.has(name))) this.#wellSince = scheduler.now;
    const minute = this.#minute();
    this.isQuiet = minute.causes === 0 && minute.commits < 20;
    const rows = this.#scene.rows();
    if (!rows) return;
    const checked = {
      scene: this.#scene,
      rows,
      calmMs: scheduler.now - this.#calmSince,
      wellMs: scheduler.now - this.#wellSince,
      isClockMoved: this.#scene.wasClockMoved,
      faults: this.faults,
      hasHappened: (...names: string[]) => this.faults.some(({ name }) => names.includes(name)),
      openForMs: (name: string) => {
        const since = open.find((fault) => fault.name === name)?.begunAt ?? scheduler.now;
        return scheduler.now - since;
      },
      minute,
      status,
    };
    for (const [invariant, check] of Object.entries(checks)) {
      const finding = this.failure ? null : check(checked);
      if (finding) this.#fail(invariant, finding);
    }
  }

  #fail(invariant: string, finding: Finding): void {
    const mail = finding.mail ?? this.#scene.book.byEmailId.get(finding.emailId ?? '')?.number;
    this.failure ??= { invariant, text: finding.text, mail, at: scheduler.time };
  }

  #minute(): Minute {
    const { statements, commits } = databases;
    const { book, domains, names } = this.#scene;
    const sessions = domains.flatMap(({ hosts }) => hosts).reduce((sum, host) => sum + host.sessions, 0);
    const now = {
      statements,
      commits,
      causes:
        book.calls + sessions + book.posts.length + names.questions + book.submissions + databases.failures,
      starts: this.#scene.nodes.reduce((sum, node) => sum + node.starts, 0),
      minutes: scheduler.now / 60_000,
      sleeps: scheduler.sleeps,
      awakeMinutes: scheduler.awakeMs / 60_000,
    };
    const before = this.#counted;
    this.#counted = now;
    const kinds = Object.keys(now) as (keyof Minute)[];
    return Object.fromEntries(kinds.map((kind) => [kind, now[kind] - before[kind]])) as unknown as Minute;
  }
}

export const checkNow = (invariants: Invariants, said: Status | null) => invariants.check(always, said);
export const checkAtEnd = (invariants: Invariants) => invariants.check(atEnd);

/**
 * The promises of the service, each a named function (invariants/), and when they are checked: those of `always` each simulated
 * minute, those of `atEnd` when everything is settled. A check gets what the actors saw (the book), the rows of the database,
 * and how calm it is; it returns what is wrong, or null.
 */

import type { Status } from '#operate/status/read-status.ts';
import { databases } from './database.ts';
import { ownFaults } from './faults.ts';
import { acceptance } from './invariants/acceptance.ts';
import type { Check, Finding, Minute } from './invariants/check.ts';
import { cost } from './invariants/cost.ts';
import { deliveries, deliveriesAtEnd } from './invariants/deliveries.ts';
import { returned } from './invariants/returned.ts';
import { status } from './invariants/status.ts';
import { webhooks, webhooksAtEnd } from './invariants/webhooks.ts';
import type { Scene } from './scene.ts';
import { type Machine, scheduler } from './scheduler.ts';

export interface Failure extends Finding {
  invariant: string;
  /** The true time. */
  at: number;
}

const always: Record<string, Check> = {
  ...acceptance,
  ...deliveries,
  ...returned,
  ...webhooks,
  ...cost,
  ...status,
};
const atEnd: Record<string, Check> = { ...deliveriesAtEnd, ...webhooksAtEnd };

export class Invariants {
  failure: Failure | null = null;
  faultCount = 0;
  /** Nothing has happened since the last check. */
  isQuiet = false;
  readonly #scene: Scene;
  readonly #happened = new Set<string>();
  /** The faults that last, by their number; since when each kind does. */
  readonly #open = new Map<string, { count: number; since: number }>();
  #calmSince = 0;
  /** The machine of the service has been in order. */
  #wellSince = 0;
  #counted: Minute = { statements: 0, commits: 0, causes: 0, starts: 0, awakeMinutes: 0 };

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  noteFault(name: string, lasts: boolean): void {
    this.faultCount += 1;
    this.#happened.add(name);
    this.#calmSince = scheduler.now;
    if (ownFaults.has(name)) this.#wellSince = scheduler.now;
    const { count, since } = this.#open.get(name) ?? { count: 0, since: scheduler.now };
    if (lasts) this.#open.set(name, { count: count + 1, since });
  }

  noteFaultEnd(name: string): void {
    const open = this.#open.get(name);
    if (open && open.count > 1) open.count -= 1;
    else this.#open.delete(name);
    this.#calmSince = scheduler.now;
    if (ownFaults.has(name)) this.#wellSince = scheduler.now;
  }

  /** Code of the service threw, and nobody caught it: the process would end. */
  noteCrash(machine: Machine, error: unknown): void {
    const text = `${machine.name}: ${error instanceof Error ? error.stack : String(error)}`;
    this.#fail('theProcessNeverEndsByItself', { text });
  }

  isSettled(): boolean {
    if (!this.#scene.postern.isUp) return false;
    const rows = this.#scene.rows();
    return rows !== null && rows.unfinished() === 0 && rows.openWebhookMessages() === 0;
  }

  /** `status`: what `postern status` says, if it was asked. */
  check(checks: Record<string, Check>, status: Status | null = null): void {
    const { isUp } = this.#scene.postern;
    if (!isUp || this.#open.size > 0) this.#calmSince = scheduler.now;
    if (!isUp || [...this.#open.keys()].some((name) => ownFaults.has(name))) this.#wellSince = scheduler.now;
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
      hasHappened: (...names: string[]) => names.some((name) => this.#happened.has(name)),
      openForMs: (name: string) => {
        const open = this.#open.get(name);
        return open ? scheduler.now - open.since : 0;
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
    this.failure ??= { invariant, ...finding, at: scheduler.time };
  }

  #minute(): Minute {
    const { statements, commits } = databases;
    const { book, domains, names } = this.#scene;
    const sessions = domains.flatMap(({ hosts }) => hosts).reduce((sum, host) => sum + host.sessions, 0);
    const now = {
      statements,
      commits,
      causes:
        book.calls +
        sessions +
        book.posts.length +
        names.questions +
        book.returned.length +
        databases.failures,
      starts: this.#scene.postern.starts,
      awakeMinutes: scheduler.awakeMs / 60_000,
    };
    const before = this.#counted;
    this.#counted = now;
    return {
      statements: now.statements - before.statements,
      commits: now.commits - before.commits,
      causes: now.causes - before.causes,
      starts: now.starts - before.starts,
      awakeMinutes: now.awakeMinutes - before.awakeMinutes,
    };
  }
}

export const checkNow = (invariants: Invariants, said: Status | null) => invariants.check(always, said);
export const checkAtEnd = (invariants: Invariants) => invariants.check(atEnd);

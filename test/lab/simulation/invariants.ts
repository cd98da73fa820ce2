/**
 * The promises of the service, each a named function (invariants/), and when they are checked: those of `always` each simulated
 * minute, those of `atEnd` when everything is settled. A check gets what the actors saw (the book), the rows of the database,
 * and how calm it is; it returns what is wrong, or null.
 */

import { databases } from './database.ts';
import { acceptance } from './invariants/acceptance.ts';
import type { Check, Finding, Minute } from './invariants/check.ts';
import { cost } from './invariants/cost.ts';
import { deliveries, deliveriesAtEnd } from './invariants/deliveries.ts';
import { webhooks, webhooksAtEnd } from './invariants/webhooks.ts';
import type { Scene } from './scene.ts';
import { type Machine, scheduler } from './scheduler.ts';

export interface Failure extends Finding {
  invariant: string;
  /** The true time. */
  at: number;
}

const always: Record<string, Check> = { ...acceptance, ...deliveries, ...webhooks, ...cost };
const atEnd: Record<string, Check> = { ...deliveriesAtEnd, ...webhooksAtEnd };

export class Invariants {
  failure: Failure | null = null;
  faultCount = 0;
  /** Nothing has happened since the last check. */
  isQuiet = false;
  readonly #scene: Scene;
  readonly #happened = new Set<string>();
  readonly #open = new Map<string, number>();
  #calmSince = 0;
  #counted: Minute = { statements: 0, commits: 0, causes: 0, minutes: 0 };

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  noteFault(name: string, lasts: boolean): void {
    this.faultCount += 1;
    this.#happened.add(name);
    this.#calmSince = scheduler.now;
    if (lasts) this.#open.set(name, (this.#open.get(name) ?? 0) + 1);
  }

  noteFaultEnd(name: string): void {
    const left = (this.#open.get(name) ?? 1) - 1;
    if (left > 0) this.#open.set(name, left);
    else this.#open.delete(name);
    this.#calmSince = scheduler.now;
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

  check(checks: Record<string, Check>): void {
    if (!this.#scene.postern.isUp || this.#open.size > 0) this.#calmSince = scheduler.now;
    const minute = this.#minute();
    this.isQuiet = minute.causes === 0 && minute.commits < 20;
    const rows = this.#scene.rows();
    if (!rows) return;
    const checked = {
      scene: this.#scene,
      rows,
      calmMs: scheduler.now - this.#calmSince,
      isClockMoved: this.#scene.wasClockMoved,
      hasHappened: (...names: string[]) => names.some((name) => this.#happened.has(name)),
      minute,
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
      causes: book.calls + sessions + book.posts.length + names.questions,
      minutes: scheduler.now / 60_000,
    };
    const before = this.#counted;
    this.#counted = now;
    return {
      statements: now.statements - before.statements,
      commits: now.commits - before.commits,
      causes: now.causes - before.causes,
      minutes: now.minutes - before.minutes,
    };
  }
}

export const checkNow = (invariants: Invariants) => invariants.check(always);
export const checkAtEnd = (invariants: Invariants) => invariants.check(atEnd);

/** The mails of a burst: what a caller wants to send, and what it does with it later. */
import type { Mail } from '../book.ts';
import { scheduler } from '../machine/scheduler.ts';
import type { Random } from '../random.ts';
import type { Scene } from '../scene.ts';
import type { Caller } from './caller.ts';

const minute = 60_000;
/** POSTERN_IDEMPOTENCY_KEEP, and some minutes. */
const keyAgeMs = 70 * minute;
/** The API ignores the same send within two seconds. */
const alertGapMs = 10_000;

/** Each run sends only some kinds, so that some runs send many of one. */
const kinds = ['alert', 'keyed', 'scheduled', 'with a deadline', 'plain', 'received'] as const;
/** Of local parts: hosts refuse the recipient (exchanger.ts), or return the mail (returner.ts). */
const endings = ['-unknown', '-quota', '-bounces', '-complains'];
type Kind = (typeof kinds)[number];

/** What the mails of a burst have in common. */
interface Burst {
  kind: Kind;
  /** Null: each has one of its own. */
  domain: string | null;
  expiresAfterS: number | null;
}

export class Mailing {
  readonly #scene: Scene;
  /** When each tenant has last sent its alert, which always has the same recipients and subject. */
  readonly #alerts = new Map<number, number>();
  readonly #keys: { tenant: number; key: string; at: number }[] = [];
  readonly #kinds: Kind[];
  /** The share of mails that are canceled, and how soon. */
  readonly #canceled: number;
  readonly #cancelMs: number;
  /** The share of recipients with an ending. */
  readonly #special: number;
  #count = 0;

  constructor(scene: Scene) {
    this.#scene = scene;
    const random = scene.random.stream('mailing');
    this.#kinds = kinds.filter(() => random.chance(0.5));
    this.#canceled = random.pick([0.02, 0.1, 0.6]);
    this.#special = random.pick([0.04, 0.04, 0.5]);
    this.#cancelMs = random.pick([2_000, 3 * minute, 20 * minute]);
  }

  burst(count: number, random: Random): void {
    const tenant = random.integer(0, this.#scene.tenants.length - 1);
    const caller = this.#scene.callers[tenant]!;
    const kind = random.chance(0.3) ? 'plain' : random.pick(this.#kinds.length > 0 ? this.#kinds : kinds);
    const burst: Burst = {
      kind,
      // Mail for one domain piles up there.
      domain: random.chance(0.5) ? random.pick(this.#scene.domains).name : null,
      // The same for all, as codes have that a person waits for; so some reach it while the mail before them is sent.
      expiresAfterS: kind === 'with a deadline' ? random.integer(30, random.pick([60, 300, 3_600])) : null,
    };
    const gapMs = random.pick([0.1, 20, 500, 3_000]);
    let afterMs = 0;
    for (let n = 0; n < count; n++) {
      const own = random.stream(`${n}`);
      scheduler.after(afterMs, () => this.#one(caller, tenant, own, burst), caller.machine);
      afterMs += own.exponential(gapMs);
    }
  }

  #one(caller: Caller, tenant: number, random: Random, { kind, domain, expiresAfterS }: Burst): void {
    if (kind === 'received') return void this.#scene.writer.send(this.#scene.tenants[tenant]!);
    const now = this.#scene.serviceTime;
    const number = ++this.#count;
    const fields = { subject: `Mail ${number}`, key: null, scheduledAt: null, expiresAfterS: null };
    const recipients = this.#recipients(number, random, domain);
    if (kind === 'alert') return void this.#alert(caller, tenant);
    if (kind === 'keyed')
      return void this.#keyed(caller, tenant, { ...fields, recipients, key: `key ${number}` }, random);
    if (kind === 'scheduled') {
      const scheduledAt = Math.round(now + random.between(1, 90) * minute);
      const mail = caller.send({ ...fields, recipients, scheduledAt });
      return void this.#change(caller, mail, random);
    }
    this.#maybeCancel(caller, caller.send({ ...fields, recipients, expiresAfterS }), random);
  }

  #maybeCancel(caller: Caller, mail: Mail, random: Random): void {
    if (!random.chance(this.#canceled)) return;
    scheduler.after(random.exponential(this.#cancelMs), () => caller.cancel(mail), caller.machine);
  }

  #recipients(number: number, random: Random, domain: string | null): string[] {
    const count = random.chance(0.2) ? random.integer(2, 4) : 1;
    return Array.from({ length: count }, (_, at) => {
      const ending = random.chance(this.#special) ? random.pick(endings) : '';
      return `m${number}r${at}${ending}@${domain ?? random.pick(this.#scene.domains).name}`;
    });
  }

  /** The same again and again, as monitoring sends it; each one counts. */
  #alert(caller: Caller, tenant: number): void {
    const now = this.#scene.serviceTime;
    const last = this.#alerts.get(tenant) ?? Number.NEGATIVE_INFINITY;
    if (Math.abs(now - last) < alertGapMs) return;
    this.#alerts.set(tenant, now);
    const { domains } = this.#scene;
    const recipients = [`alert${tenant}@${domains[tenant % domains.length]!.name}`];
    caller.send({ recipients, subject: 'Alert', key: null, scheduledAt: null, expiresAfterS: null });
  }

  /** With a key, which is used again long after the server may have forgotten it, for another mail. */
  #keyed(caller: Caller, tenant: number, wanted: Parameters<Caller['send']>[0], random: Random): void {
    // A key counts at any time, so with a clock that was ahead it is not known when it is forgotten.
    const old = this.#scene.wasClockMoved
      ? -1
      : this.#keys.findIndex((one) => one.tenant === tenant && scheduler.time - one.at > keyAgeMs);
    const key = old >= 0 && random.chance(0.5) ? this.#keys.splice(old, 1)[0]!.key : wanted.key!;
    const mail = caller.send({ ...wanted, key });
    this.#keys.push({ tenant, key, at: scheduler.time });
    if (random.chance(0.3))
      scheduler.after(
        random.between(0, 20) * minute,
        () => caller.repeat(mail, { ...wanted, key }),
        caller.machine,
      );
  }

  #change(caller: Caller, mail: Mail, random: Random): void {
    const waitMs = random.exponential(20 * minute);
    if (random.chance(0.3)) scheduler.after(waitMs, () => caller.cancel(mail), caller.machine);
    else if (random.chance(0.4)) {
      const at = () => Math.round(this.#scene.serviceTime + random.between(1, 60) * minute);
      scheduler.after(waitMs, () => caller.reschedule(mail, at()), caller.machine);
    }
  }
}

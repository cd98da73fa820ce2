/**
 * Faults that a person could write, each a change of one place of the source (planting.ts). The simulation must find each; a new
 * invariant comes with one. `file`: its name, which is unique in the source; `replace` is in it once.
 */
interface PlantedFault {
  file: string;
  replace: string;
  by: string;
  /** It shows with several nodes only. */
  nodes?: number;
}

export const plantedFaults: Record<string, PlantedFault> = {
  'a negative age counts as young': {
    file: 'clock.ts',
    replace: 'return age < ms && age > -Math.min(ms, maxSkewMs);',
    by: 'return age < ms;',
  },
  'a lease is not renewed': {
    file: 'held-leases.ts',
    replace: 'await this.#renewAll();',
    by: '',
  },
  'a sync is left out': {
    file: 'open.ts',
    replace: 'pragma synchronous = full;',
    by: 'pragma synchronous = normal;',
  },
  'the deadline is compared in seconds': {
    file: 'dispatcher.ts',
    replace: 'return hasDeadline === true && expiresAt <= this.#clock.now();',
    by: 'return hasDeadline === true && Math.floor(expiresAt / 1000) < Math.floor(this.#clock.now() / 1000);',
  },
  'a poll is lost after an error': {
    file: 'claimer.ts',
    replace: 'poller.schedule(this.#scannedAt);',
    by: 'if (this.#rounds % 50 !== 0) poller.schedule(this.#scannedAt);',
  },
  'a message that may have arrived is not marked so': {
    file: 'outcome.ts',
    replace: "const possibleDuplicate = 'afterDot' in result && result.afterDot;",
    by: 'const possibleDuplicate = false;',
  },
  'an interrupted attempt is not marked as a possible duplicate': {
    file: 'deliver.ts',
    replace: "{ kind: 'interrupted', detail, afterDot: true }",
    by: "{ kind: 'interrupted', detail, afterDot: false }",
  },
  'a later webhook overtakes': {
    file: 'webhook-outbox.ts',
    replace: 'order by position limit 1)',
    by: 'order by position desc limit 1)',
  },
  'a webhook is tried once': {
    file: 'webhook-outcomes.ts',
    replace: "const isFinal = ({ kind }: WebhookVerdict) => kind === 'delivered' || kind === 'failed';",
    by: "const isFinal = ({ kind }: WebhookVerdict) => kind !== 'gone';",
  },
  'the feed of webhooks skips events': {
    file: 'outbox-feed.ts',
    replace: 'if (!isMore) seen = position;',
    by: 'if (!isMore) seen = position + 1;',
  },
  'leases of the last process stay': {
    file: 'lease-statements.ts',
    replace: '? rows.where({ lease_owner: node })',
    by: "? rows.where({ lease_owner: '' })",
  },
  'deferrals are not counted': {
    file: 'transition.ts',
    replace: 'const attempts = delivery.attempts + Number(wasTried(attempt));',
    by: "const attempts = delivery.attempts + Number(wasTried(attempt) && attempt.verdict.outcome !== 'deferred');",
  },
  'an attempt that failed is done again at once': {
    file: 'schedule.ts',
    replace: 'return waitAfter(waits, attempts) * (1 - spread + 2 * spread * random());',
    by: 'return waitAfter(waits, attempts) * 0;',
  },
  'credits are taken for each mail, not each recipient': {
    file: 'acceptance.ts',
    replace: 'fromWallet: charge(org, accepted.size, send, snapshot)',
    by: 'fromWallet: charge(org, 1, send, snapshot)',
  },
  'a cancellation refunds all': {
    file: 'apply-queue-action.ts',
    replace: 'if (attempts === 0) counts.set',
    by: 'counts.set',
  },
  'the daily limit is one too high': {
    file: 'full-day.ts',
    replace: 'emailsPerDay !== null && today.before + today.emails + wanted > emailsPerDay;',
    by: 'emailsPerDay !== null && today.before > emailsPerDay;',
  },
  'a canceled mail stays in the queue': {
    file: 'apply-queue-action.ts',
    replace: "cancel: () => ({ status: 'canceled', due_at: null }),",
    by: "cancel: (_, now) => ({ status: 'queued', due_at: now }),",
  },
  'a window of duplicates of an hour': {
    file: 'idempotency.ts',
    replace: 'const duplicateWindowMs = 2000;',
    by: 'const duplicateWindowMs = 3_600_000;',
  },
  'a circuit never closes': {
    file: 'shaping.ts',
    replace: 'return { ...state, limit, failures: 0, circuit: null, answeredAt };',
    by: 'return { ...state, limit, failures: 0, answeredAt };',
  },
  'a key is looked up in the window of duplicates': {
    file: 'idempotency.ts',
    replace:
      "return kind === 'window' ? isRecent(at, acceptedAt, duplicateWindowMs) : acceptedAt - at < keepMs;",
    by: 'return isRecent(at, acceptedAt, duplicateWindowMs);',
  },
  'a released hold is forgotten': {
    file: 'apply-queue-action.ts',
    replace: `release: (trx, now) => ({
    status: trx.raw(
      \`case when attempts > 0 then 'deferred'`,
    by: `release: (trx, now) => ({
    status: trx.raw(
      \`case when attempts > 0 then 'held'`,
  },
  'an answer is given before the commit': {
    file: 'group-commit.ts',
    replace: 'const answers = await commit(group.map(({ item }) => item));',
    by: 'const answers = await Promise.race([commit(group.map(({ item }) => item)), new Promise<Answer[]>((resolve) => setTimeout(resolve, 2_000, []))]);',
  },
  'a refused greeting is final': {
    file: 'outcome.ts',
    replace: 'return inTransaction && permanent && agreed && !rule.passes;',
    by: 'return permanent && agreed && !rule.passes;',
  },
  'a poll looks although nothing has changed': {
    file: 'poller.ts',
    replace: 'if (quietUntil <= now || !this.#isAlone())',
    by: 'if (true)',
  },
  'a lease is an orphan at once': {
    file: 'delivery.ts',
    replace: 'freeOrphans(db, node, clock.now(), clock.now() + leaseMs / 2)',
    by: 'freeOrphans(db, node, clock.now(), clock.now() + leaseMs)',
  },
  'a mail being sent can be canceled': {
    file: 'apply-queue-action.ts',
    replace: "query.whereIn('status', changeable[action]).whereNull('lease_owner');",
    by: "query.whereIn('status', action === 'cancel' ? [...changeable.cancel, 'sending'] : changeable[action]);",
  },
  'mail at its deadline is not looked for': {
    file: 'claimer.ts',
    replace: 'const expired = limit > 0 ? await store.claimExpired(now, limit) : [];',
    by: 'const expired: Delivery[] = [];',
  },
  'an outcome that cannot be recorded is dropped': {
    file: 'runner.ts',
    replace: 'if (this.#aborting.signal.aborted) return;',
    by: 'return;',
  },
  'the leases in memory have no bound': {
    file: 'lease-policy.ts',
    replace: 'return Math.max(this.#max - this.#leased, 0);',
    by: 'return maxPerClaim;',
  },
  'a bounce of a mail in doubt is forgotten': {
    file: 'bounce-transition.ts',
    replace: "return status === 'delivered' || (status === 'deferred' && mayHaveArrived);",
    by: "return status === 'delivered';",
  },
  'a bounce that comes early is dropped': {
    file: 'bounce-handler.ts',
    replace: "if (outcome === 'gone') return;",
    by: "if (outcome === 'gone' || outcome === 'wait') return;",
  },
  'a view without its trigger stays': {
    file: 'write-together.ts',
    replace: 'because it is a view`)',
    by: 'because it is not a view`)',
  },
  'the room for leases may be negative': {
    file: 'lease-policy.ts',
    replace: 'return Math.max(this.#max - this.#leased, 0);',
    by: 'return this.#max - this.#leased;',
  },
  'a lease of another node is taken while it lasts': {
    file: 'lease-statements.ts',
    replace: ": rows.where('due_at', '<=', now).whereNot({ lease_owner: node });",
    by: ': rows.whereNot({ lease_owner: node });',
    nodes: 2,
  },
  'renewals end with the first that fails': {
    file: 'held-leases.ts',
    replace: 'if (!this.#isStopping) this.#schedule(this.#rounds > 0 ? this.#intervalMs : renewRetryMs);',
    by: 'if (!this.#isStopping && this.#rounds > 0) this.#schedule(this.#intervalMs);',
  },
  'a mail that is refused for now counts as delivered': {
    file: 'transition.ts',
    replace: "if (verdict.outcome === 'delivered') {",
    by: "if (verdict.outcome === 'delivered' || (verdict.outcome === 'deferred' && reply !== null)) {",
  },
  'an event is written twice': {
    file: 'outcomes.ts',
    replace: "insertRows(all, 'events', transitions.map(eventOf)),",
    by: "insertRows(all, 'events', [...transitions, ...transitions].map(eventOf)),",
  },
  'a deferral is dated by the next attempt': {
    file: 'outcomes.ts',
    replace: 'type: event.type, at: attempt.endedAt, data });',
    by: 'type: event.type, at: Date.parse(String(event.data.nextAttemptAt)) || attempt.endedAt, data });',
  },
  'a deadline is not looked at before a start': {
    file: 'dispatcher.ts',
    replace: 'return hasDeadline === true && expiresAt <= this.#clock.now();',
    by: 'return false;',
  },
  'scheduled mail starts with the mail before it': {
    file: 'scheduled-mail.ts',
    replace: ".where('due_at', '<=', now)",
    by: ".where('due_at', '<=', now + 600_000)",
  },
  'a mail being sent is answered as canceled': {
    file: 'cancel-email.ts',
    replace: "canceled: addressesOf((status) => status === 'canceled'),",
    by: "canceled: addressesOf((status) => status === 'canceled' || status === 'sending'),",
  },
  'the wait for more sends has no end': {
    file: 'group-commit.ts',
    replace: 'const timer = setTimeout(endWait, expectation.maxWaitMs);',
    by: 'const timer = setTimeout(() => {}, expectation.maxWaitMs);',
  },
  'a send that the full day refuses is written': {
    file: 'acceptance.ts',
    replace: 'if (isFull) return isFull;',
    by: `if (isFull) {
    const paid = { credits: wanted.length, fromWallet: charge(org, wanted.length, send, snapshot) };
    record(send, snapshot, paid, () => 'queued');
    return isFull;
  }`,
  },
  'a charge is not in the ledger': {
    file: 'acceptance.ts',
    replace:
      "snapshot.rows.tables.credit_entries.push(entry(paid, -credits, 'send', send.emailId, send.acceptedAt));",
    by: '',
  },
  'received mail is answered before its commit': {
    file: 'reception-handler.ts',
    replace: "if ((await this.#parts.record(mails)) === 'full') throw storeIsFull();",
    by: 'void this.#parts.record(mails).catch(() => {});',
  },
  'a bounce counts as a complaint': {
    file: 'bounce-transition.ts',
    replace: "{ status: 'bounced', bounce, event: { type: 'email.bounced', data } }",
    by: "{ status: 'complained', bounce, event: { type: 'email.bounced', data } }",
  },
  'a failed look at the queue is not caught': {
    file: 'poller.ts',
    replace: '// The look reports it.',
    by: "throw new Error('planted');",
  },
};

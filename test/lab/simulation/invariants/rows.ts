/** The rows of the service's database as they are committed, read beside the service at no virtual cost. */
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { attemptDetail } from '#platform/database/tables/packed-records.ts';
import { stages } from '#platform/database/tables/unfinished-deliveries.ts';
import type { SharedPostgres } from '../machine/shared-postgres.ts';

export interface DeliveryRow {
  id: string;
  email_id: string;
  /** Of the mail's header. */
  message_id: string;
  recipient: string;
  domain: string;
  status: string;
  attempts: number;
  due_at: number | null;
  updated_at: number;
  created_at: number;
  expires_at: number;
  has_deadline: number;
  lease_owner: string | null;
}

/** That the invariants read. */
const tables = [
  'organizations',
  'credit_entries',
  'daily_usage',
  'emails',
  'deliveries',
  'attempts',
  'events',
  'webhooks',
  'webhook_messages',
  'received_mails',
];

export class Rows {
  readonly #sqlite: DatabaseSync;
  readonly #compiled = new Map<string, StatementSync>();
  #deliveries: DeliveryRow[] | null = null;

  private constructor(sqlite: DatabaseSync) {
    this.#sqlite = sqlite;
  }

  /** Null if the file cannot be read now. */
  static open(file: string): Rows | null {
    try {
      const sqlite = new DatabaseSync(file, { readOnly: true, timeout: 0 });
      sqlite.prepare('select 1 from deliveries limit 1').all();
      return new Rows(sqlite);
    } catch {
      return null;
    }
  }

  /** The tables of PostgreSQL in an SQLite of its own, so that the invariants are the same. */
  static async copyOf(postgres: SharedPostgres): Promise<Rows> {
    const sqlite = new DatabaseSync(':memory:');
    for (const table of tables) {
      const { names, rows } = await postgres.read(table);
      sqlite.exec(`create table ${table} (${names.join(', ')})`);
      const insert = sqlite.prepare(`insert into ${table} values (${names.map(() => '?').join(', ')})`);
      for (const row of rows) insert.run(...row);
    }
    return new Rows(sqlite);
  }

  close(): void {
    this.#sqlite.close();
  }

  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    const statement = this.#compiled.get(sql) ?? this.#sqlite.prepare(sql);
    this.#compiled.set(sql, statement);
    return statement.all(...values) as Row[];
  }

  /** The rows may have changed. */
  refresh(): this {
    this.#deliveries = null;
    return this;
  }

  deliveries(): DeliveryRow[] {
    this.#deliveries ??= this.all<DeliveryRow>(
      `select deliveries.id, email_id, emails.message_id, recipient, domain, status, attempts, due_at, deliveries.updated_at, deliveries.created_at,
         expires_at, has_deadline, lease_owner
       from deliveries join emails on emails.id = email_id`,
    );
    return this.#deliveries;
  }

  /** What a clock makes happen: counts, and the next time after `now`. */
  due(now: number): { underWay: number; overdue: number; next: number | null } {
    const [row] = this.all<{ underWay: number; overdue: number; next: number | null }>(
      `with due(at) as (
         select min(due_at, expires_at) from deliveries where ${stages.waiting}
         union all select due_at from deliveries where ${stages.scheduled}
         union all select due_at from webhook_messages where due_at is not null and lease_owner is null)
       select (select count(*) from deliveries where ${stages.leased})
            + (select count(*) from webhook_messages where lease_owner is not null) as underWay,
          count(*) filter (where at <= ?) as overdue, min(at) filter (where at > ?) as next from due`,
      now,
      now,
    );
    return row!;
  }

  count(table: string, condition = 'true'): number {
    const [row] = this.all<{ count: number }>(`select count(*) as count from ${table} where ${condition}`);
    return row!.count;
  }

  leased(): number {
    return this.count('deliveries', stages.leased);
  }

  unfinished(): number {
    return this.count('deliveries', "status in ('scheduled', 'queued', 'sending', 'deferred', 'held')");
  }

  openWebhookMessages(): number {
    return this.count(
      'webhook_messages',
      `status in ('waiting', 'queued', 'posting') and webhook_id in (select id from webhooks where status = 'active')`,
    );
  }

  /** Whether an attempt of the delivery is recorded as one after which the message may have arrived. */
  isDoubtful(deliveryId: string): boolean {
    const rows = this.all<{ packed: Uint8Array | null }>(
      'select * from attempts where delivery_id = ?',
      deliveryId,
    );
    return rows.some((row) => {
      const packed = row.packed && Buffer.from(row.packed);
      return attemptDetail({ ...row, packed }).verdict.possibleDuplicate;
    });
  }
}

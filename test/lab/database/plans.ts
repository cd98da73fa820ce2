/** How a database goes about the statements of a function, asked of the statements that it has really run. */
import type { Knex } from 'knex';
import { isPostgres } from '#platform/database/engine/open.ts';

export interface Plan {
  sql: string;
  /** In which it looks something up, or whose order it follows. */
  indexes: string[];
  /** Tables that are read from end to end; those that are sorted to find the first of them. */
  scans: string[];
  sorts: boolean;
  /** Partitions that it goes to, by their own names. */
  partitions: string[];
}

interface Statement {
  sql: string;
  bindings: unknown[];
}

/** One plan for each statement that reads or changes rows; what only inserts has none worth a look. */
export async function plansOf(db: Knex, run: () => Promise<unknown>): Promise<Plan[]> {
  const statements: Statement[] = [];
  const hear = ({ sql, bindings = [] }: Statement) => statements.push({ sql, bindings });
  db.on('query', hear);
  try {
    await run();
  } finally {
    db.removeListener('query', hear);
  }
  const plans: Plan[] = [];
  for (const statement of statements.filter(({ sql }) => /^\s*(select|update|delete|with)\b/i.test(sql)))
    plans.push(await (isPostgres(db) ? explainPostgres(db, statement) : explainSqlite(db, statement)));
  return plans;
}

/** Each line is a step: SEARCH is a look-up, SCAN goes from end to end, of a table or of an index. */
async function explainSqlite(db: Knex, { sql, bindings }: Statement): Promise<Plan> {
  const connection = await db.client.acquireConnection();
  const steps = await new Promise<{ detail: string }[]>((resolve, reject) => {
    connection.all(
      `explain query plan ${sql}`,
      bindings,
      (error: Error | null, rows: { detail: string }[]) => (error ? reject(error) : resolve(rows)),
    );
  });
  await db.client.releaseConnection(connection);
  const details = steps.map(({ detail }) => detail);
  const found = (pattern: RegExp) => details.flatMap((detail) => pattern.exec(detail)?.[1] ?? []);
  return {
    sql,
    indexes: found(/ USING (?:COVERING )?INDEX (\w+)/),
    // A partial index that is followed from end to end holds no more than what is asked for.
    scans: found(/^SCAN (\w+)(?! VIRTUAL TABLE)(?: USING (?:COVERING )?INDEX sqlite_autoindex_\w+)?$/),
    sorts: details.includes('USE TEMP B-TREE FOR ORDER BY') && / limit /i.test(sql),
    partitions: [],
  };
}

interface Node {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  Plans?: Node[];
}

async function explainPostgres(db: Knex, { sql, bindings }: Statement): Promise<Plan> {
  const connection = await db.client.acquireConnection();
  const { rows } = await connection.query({ text: `explain (format json) ${sql}`, values: bindings });
  await db.client.releaseConnection(connection);
  const nodes = flat(rows[0]['QUERY PLAN'][0].Plan);
  const { tables, indexes } = await partitionsOf(db);
  const limits = nodes.filter((node) => node['Node Type'] === 'Limit');
  return {
    sql,
    indexes: nodes.flatMap(({ 'Index Name': name }) => (name ? (indexes.get(name) ?? name) : [])),
    scans: nodes
      .filter((node) => /Seq Scan/.test(node['Node Type']))
      .flatMap(({ 'Relation Name': name }) => (name ? named(tables, name) : [])),
    sorts: limits.some(({ Plans = [] }) => Plans.flatMap(flat).some((node) => node['Node Type'] === 'Sort')),
    partitions: nodes.flatMap(({ 'Relation Name': name }) => (name && tables.has(name) ? name : [])),
  };
}

function named(tables: Map<string, string | null>, name: string): string | [] {
  return tables.has(name) ? (tables.get(name) ?? []) : name;
}

/** Of each partition and of its indexes what they are a part of; null: it is empty, and read in no time. */
async function partitionsOf(db: Knex) {
  const connection = await db.client.acquireConnection();
  const { rows } = await connection.query(
    `select part.relname as name, part.relkind as kind, part.relpages as pages, whole.relname as whole
     from pg_inherits join pg_class as part on part.oid = inhrelid join pg_class as whole on whole.oid = inhparent`,
  );
  await db.client.releaseConnection(connection);
  const of = (kind: string) => rows.filter((row: { kind: string }) => row.kind === kind);
  const tables: [string, string | null][] = of('r').map(
    (row: { name: string; pages: number; whole: string }) => [row.name, row.pages > 0 ? row.whole : null],
  );
  const indexes: [string, string][] = of('i').map((row: { name: string; whole: string }) => [
    row.name,
    row.whole,
  ]);
  return { tables: new Map(tables), indexes: new Map(indexes) };
}

function flat(node: Node): Node[] {
  return [node, ...(node.Plans ?? []).flatMap(flat)];
}

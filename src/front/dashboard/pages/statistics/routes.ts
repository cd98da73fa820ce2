/** The page of statistics: what became of the mail, by group, with the same as CSV. */

import { csvText } from '#accounts/csv-text.ts';
import { dayOf } from '#accounts/limits.ts';
import { listKeys } from '#accounts/rows/keys.ts';
import { legible } from '#front/dashboard/legible.ts';
import { type DashboardPage, type OrgVisit, type PageParts, sendBody, show } from '#front/dashboard/page.ts';
import { figuresBy, type Grouping, groupings } from '#mail/record/figures-by-group.ts';
import { type Quantile, quantile } from '#mail/record/latency.ts';
import { type GroupFigures, theRest } from '#mail/record/rows/group-statistics.ts';
import { complaintRate, hardBounceRate, type Rate, shareOf } from '#operate/status/reputation.ts';
import { withoutKey } from '#platform/database/tables/mail-group.ts';

export const statisticsPage: DashboardPage = {
  organization: {
    async 'GET /dashboard/o/:org/statistics'(visit, parts) {
      const chosen = choiceOf(visit);
      const rows = sorted(await readRows(visit, parts, chosen), chosen.sort);
      const isOfBounces = bounceGroupings.has(chosen.by);
      const largest = Math.max(...rows.map((row) => (isOfBounces ? row.bounced : row.sent)), 1);
      return show('statistics/statistics', 'Statistics', {
        ...chosen,
        rows,
        largest,
        isOfBounces,
        titles,
        periods,
      });
    },
    async 'GET /dashboard/o/:org/statistics/export'(visit, parts) {
      const chosen = choiceOf(visit);
      const rows = sorted(await readRows(visit, parts, chosen), chosen.sort);
      const csv = csvText([head, ...rows.map(cellsOf)]);
      return sendBody(csv, 'text/csv; charset=utf-8', {
        'Content-Disposition': `attachment; filename="statistics-by-${chosen.by}.csv"`,
      });
    },
  },
};

const titles: Record<Grouping, string> = {
  domain: 'Domain',
  provider: 'Provider',
  tag: 'Tag',
  sender: 'Sender',
  key: 'API key',
  stream: 'Stream',
  reason: 'Bounce reason',
  fault: 'Fault',
};

/** They count bounces and nothing else. */
const bounceGroupings = new Set<Grouping>(['reason', 'fault']);

const dayMs = 86_400_000;

const periods = [
  { days: 1, title: 'Today' },
  { days: 7, title: '7 days' },
  { days: 30, title: '30 days' },
  { days: 90, title: '90 days' },
];

const sorts = ['name', 'sent', 'delivered', 'bounced', 'hard', 'complained', 'p50', 'p95'] as const;

type Sort = (typeof sorts)[number];

interface Choice {
  by: Grouping;
  days: number;
  sort: Sort;
  /** UTC days, of which `until` is the last. */
  since: string;
  until: string;
}

function choiceOf({ query, now }: OrgVisit): Choice {
  const by = groupings.find((one) => one === query.get('by')) ?? 'domain';
  const days = periods.find((one) => `${one.days}` === query.get('days'))?.days ?? 30;
  const byDefault = bounceGroupings.has(by) ? 'bounced' : 'sent';
  const sort = sorts.find((one) => one === query.get('sort')) ?? byDefault;
  return { by, days, sort, since: dayOf(now - (days - 1) * dayMs), until: dayOf(now) };
}

type Row = Awaited<ReturnType<typeof readRows>>[number];

async function readRows({ org, base }: OrgVisit, { db }: PageParts, { by, since, until }: Choice) {
  const days = { since: Date.parse(since), until: Date.parse(until) + dayMs };
  const groups = await figuresBy(db, org.id, by, days);
  const before = await figuresBy(db, org.id, by, { since: 2 * days.since - days.until, until: days.since });
  const earlier = new Map(before.map((group) => [group.name, group]));
  const keys = by === 'key' ? await listKeys(db, org.id) : [];
  const labels = new Map([
    [withoutKey, 'Sent without a key'],
    ...keys.map(({ id, label }) => [id, label] as const),
  ]);
  return groups.map((group) => {
    const { name, hard, sent, took, delivered } = group;
    const isRest = name === theRest;
    return {
      ...group,
      isRest,
      title: isRest ? 'other' : legible(labels.get(name) ?? name),
      href: isRest ? null : linkTo(base, { by, since, until }, name),
      deliveredShare: shareOf(delivered, sent),
      hardRate: hardBounceRate({ hard, sent }),
      complaintRate: complaintRate(group),
      hardBefore: riseOf(hardBounceRate, group, earlier.get(name)),
      complaintBefore: riseOf(complaintRate, group, earlier.get(name)),
      p50: quantile(took, 0.5),
      p95: quantile(took, 0.95),
    };
  });
}

/** A rate that has changed by half counts as changed. */
const notable = 1.5;

/** The rate in the period before, if there was enough mail in both to say that it has changed; null if not. */
function riseOf(
  rateOf: (group: GroupFigures) => Rate,
  group: GroupFigures,
  earlier?: GroupFigures,
): number | null {
  const [now, before] = [rateOf(group), earlier && rateOf(earlier)];
  if (!before || now.tone === null || before.tone === null) return null;
  const [high, low] = [Math.max(now.share!, before.share!), Math.min(now.share!, before.share!)];
  return high > notable * low ? before.share : null;
}

/** The emails of a name; of a provider, its domains. */
function linkTo(
  base: string,
  { by, since, until }: Pick<Choice, 'by' | 'since' | 'until'>,
  name: string,
): string | null {
  const filter = {
    domain: 'to',
    tag: 'tag',
    sender: 'from',
    key: 'key',
    reason: 'reason',
    fault: 'fault',
    provider: null,
    stream: null,
  }[by];
  if (filter === null) return null;
  const value = by === 'domain' ? `@${name}` : name;
  return `${base}/emails?${new URLSearchParams({ [filter]: value, since, until })}`;
}

/** Names from A to Z, the most of a figure first; the rest is last. */
function sorted(rows: Row[], sort: Sort): Row[] {
  const figure = (row: Row) => (sort === 'p50' || sort === 'p95' ? (row[sort]?.ms ?? -1) : Number(row[sort]));
  const compare = (a: Row, b: Row) =>
    sort === 'name' ? a.title.localeCompare(b.title) : figure(b) - figure(a);
  return rows.toSorted((a, b) => Number(a.isRest) - Number(b.isRest) || compare(a, b));
}

const counts = [
  'sent',
  'delivered',
  'deferred',
  'bounced',
  'hard',
  'expired',
  'complained',
  'opened',
  'clicked',
] as const;

const head = ['name', ...counts.map((name) => (name === 'hard' ? 'hardBounced' : name)), 'p50Ms', 'p95Ms'];

function cellsOf(row: Row): string[] {
  const ms = (found: Quantile | null) => (found === null ? '' : `${Math.round(found.ms)}`);
  return [row.title, ...counts.map((name) => `${row[name]}`), ms(row.p50), ms(row.p95)];
}

/** The schemas of statistics in requests and responses. */
import { z } from 'zod';
import { success } from '#front/api/management.ts';
import { time } from '#front/http/query.ts';
import { groupings } from '#mail/record/figures-by-group.ts';

export const statsQuery = z.object({
  by: z
    .enum(groupings, { error: `must be one of ${groupings.join(', ')}` })
    .default('domain')
    .meta({
      description:
        "What the figures are grouped by. domain: the recipient's, 20 a day and the rest as one. provider: who runs its mail " +
        'servers. tag: `name=value`, 50 a day. sender: the address. key: the id of the API key. stream: its name. reason, fault: of a bounce, as in ' +
        '`bounce.category` and `bounce.fault`. By default domain.',
    }),
  since: time.optional().meta({
    description:
      'The first day, in UTC: a date, or any time in it. By default 30 days before `until`; kept for 400 days.',
  }),
  until: time.optional().meta({ description: 'Days that begin before this time. By default now.' }),
});

const share = (of: string) =>
  z
    .number()
    .nullable()
    .meta({ description: `${of} Null if there are none.` });

const ms = (part: string) =>
  z
    .int()
    .nullable()
    .meta({
      description: `Milliseconds from acceptance to delivery, within which ${part} arrived; 21600000 stands for more. Null if nothing arrived.`,
    });

const figures = z
  .object({
    name: z.string().nullable().meta({ description: 'Null: all other names of the group.' }),
    sent: z.int().meta({ description: 'Recipients accepted.' }),
    delivered: z.int(),
    deferred: z.int().meta({ description: 'Attempts that are repeated.' }),
    bounced: z.int(),
    hardBounced: z.int().meta({ description: 'Those of `bounced` that are hard.' }),
    expired: z.int(),
    complained: z.int().meta({ description: 'Without Gmail, which sends no reports.' }),
    opened: z.int(),
    clicked: z.int(),
    hardBounceRate: share('Hard bounces of sent.'),
    complaintRate: share('Complaints of delivered; too low, because Gmail sends no reports.'),
    p50Ms: ms('half'),
    p95Ms: ms('95 %'),
  })
  .meta({ description: 'The figures of one name.' });

export const statsSchemas = {
  Stats: success({
    by: z.enum(groupings),
    since: z.iso.date().meta({ description: 'The first day, in UTC.' }),
    until: z.iso.date().meta({ description: 'The day after the last one.' }),
    groups: z.array(figures).meta({ description: 'The name with the most mail first; the rest last.' }),
  }),
  GroupStats: figures,
};

/** An organization's streams: create, change, remove. Their lists are on the page of suppressions. */
import { z } from 'zod';
import { alterStream, deleteStream, longestTitle, makeStream } from '#accounts/manage-streams.ts';
import { findStream, listStreams, type Stream } from '#accounts/rows/streams.ts';
import { limitOf } from '#front/dashboard/form-amounts.ts';
import { asProblem, showForm } from '#front/dashboard/form-page.ts';
import { checkForm, type Errors, nullable, oneLine, parsedBy } from '#front/dashboard/forms.ts';
import { type DashboardPage, type OrgVisit, type PageParts, redirect } from '#front/dashboard/page.ts';
import { notFound } from '#front/dashboard/page-error.ts';
import { isStreamName, streamKinds } from '#platform/values/stream.ts';

const name = parsedBy(
  (text) => (isStreamName(text) ? text : null),
  'Enter 1 to 30 small letters, digits and hyphens, such as newsletter.',
);

/** Three ways to answer a question that a domain answers, too. */
const tracked = z.enum(['', 'on', 'off']).transform((value) => (value === '' ? null : value === 'on'));

const settings = z.object({
  title: oneLine('a title', longestTitle),
  kind: z.enum(streamKinds, { error: 'Choose one of the two.' }),
  emailsPerDay: limitOf(0, 1_000_000_000),
  openTracking: tracked,
  clickTracking: tracked,
  color: nullable(
    parsedBy((text) => (/^#[0-9a-f]{6}$/i.test(text) ? text : null), 'Enter a color such as #1a73e8.'),
  ),
});

const newStream = settings.pick({ title: true, kind: true }).extend({ name });

export const streamsPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/streams': (visit, parts) => list(visit, parts),
    async 'POST /dashboard/o/:org/streams'(visit, parts) {
      const checked = checkForm(visit.form, newStream);
      if (!checked.ok) return list(visit, parts, checked.errors);
      const wanted = { orgId: visit.org.id, ...checked.values };
      const made = await makeStream(parts.db, wanted, visit.now).catch(asProblem);
      if ('problem' in made) return list(visit, parts, { name: made.problem });
      return redirect(`${visit.base}/streams/${made.name}`, `The stream ${made.name} was created.`);
    },
    'GET /dashboard/o/:org/streams/:stream': async (visit, { db }) => page(visit, await streamIn(visit, db)),
    async 'POST /dashboard/o/:org/streams/:stream'(visit, { db }) {
      const stream = await streamIn(visit, db);
      const checked = checkForm(visit.form, settings);
      if (!checked.ok) return page(visit, stream, checked.errors);
      await alterStream(db, stream, checked.values);
      return redirect(
        `${visit.base}/streams/${stream.name}`,
        'The settings were saved and apply within a second.',
      );
    },
    async 'POST /dashboard/o/:org/streams/:stream/remove'(visit, { db }) {
      const stream = await streamIn(visit, db);
      const removed = (await deleteStream(db, stream).catch(asProblem)) ?? null;
      if (removed) return redirect(`${visit.base}/streams`, { tone: 'bad', text: removed.problem });
      return redirect(`${visit.base}/streams`, `The stream ${stream.name} was removed.`);
    },
  },
};

async function list(visit: OrgVisit, { db }: PageParts, errors: Errors = {}) {
  const streams = await listStreams(db, visit.org.id);
  return showForm('streams/streams', 'Streams', visit, { streams }, errors);
}

function page(visit: OrgVisit, stream: Stream, errors: Errors = {}) {
  const switched = (value: boolean | null) => (value === null ? '' : value ? 'on' : 'off');
  const { title, kind, emailsPerDay, openTracking, clickTracking, color } = stream;
  const now = {
    title,
    kind,
    emailsPerDay: emailsPerDay === null ? 'unlimited' : String(emailsPerDay),
    openTracking: switched(openTracking),
    clickTracking: switched(clickTracking),
    color: color ?? '',
  };
  const data = { stream, now };
  return showForm('streams/stream', `Stream ${stream.name}`, visit, data, errors);
}

async function streamIn({ context, org }: OrgVisit, db: PageParts['db']): Promise<Stream> {
  const { stream } = context.params as { stream: string };
  const found = await findStream(db, org.id, stream);
  if (!found) throw notFound('stream');
  return found;
}

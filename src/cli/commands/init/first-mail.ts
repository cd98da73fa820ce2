/** The first mail: sent from the domain and followed until it is delivered, or it is known why it is not. */

import type { CommandContext } from '#cli/command-context.ts';
import { sendHere } from '#cli/commands/email/send.ts';
import { watchEmail } from '#cli/commands/email/watch-email.ts';
import { Failure } from '#cli/failure.ts';
import { why } from '#cli/render/why-view.ts';
import { type EmailRecord, findEmail, listAttempts } from '#mail/record/rows/emails.ts';
import { emailIdsOf } from '#mail/record/rows/find-by-name.ts';
import { telemetry } from '#mail/record/telemetry.ts';
import { type FindingDraft, failure, ok, warning } from '#operate/doctor/finding.ts';
import { readWhyInputs } from '#operate/explain/why-input.ts';
import { iso } from '#platform/base/clock.ts';
import { isFinal } from '#platform/values/states.ts';
import type { SetUp } from './set-up.ts';
import type { Step } from './step.ts';
import { findOwner } from './tenant.ts';

export function firstMailStep(setUp: SetUp, to: string, needs: Step[]): Step {
  const { context, answers, shown, stopped, waitMs } = setUp;
  return {
    what: `send a mail to ${to}`,
    needs,
    async isDone() {
      const db = await context.db();
      const [newest] = await emailIdsOf(db, to);
      const email = newest === undefined ? null : await findEmail(db, newest, null);
      return email && isDelivered(email) ? ok(`delivered before, ${email.id}`) : null;
    },
    async do() {
      const content = {
        from: `postmaster@${answers.domain}`,
        subject: 'The first mail from Postern',
        text: `${answers.hostname} sends mail for ${answers.domain}.\n`,
      };
      const { emailId } = await sendHere(context, (await findOwner(setUp))!, [to], content);
      const until = AbortSignal.any([stopped, AbortSignal.timeout(waitMs)]);
      const email = await watchEmail(context, emailId, until);
      if (email === null) throw new Failure(`${emailId} was deleted`);
      shown.email = telemetry(email);
      return judge(context, email);
    },
    cure: '`postern send` sends another',
  };
}

function isDelivered({ deliveries }: EmailRecord): boolean {
  return deliveries.every(({ status }) => status === 'delivered');
}

async function judge(context: CommandContext, email: EmailRecord): Promise<FindingDraft> {
  const db = await context.db();
  const attempts = await listAttempts(db, email.id);
  const inputs = await readWhyInputs(db, email, { attempts, now: context.now(), served: true });
  const reasons = inputs.map((input) => why(input, iso)).join(' ');
  if (isDelivered(email)) return ok(reasons);
  const isOver = email.deliveries.every(({ status }) => isFinal(status));
  return (isOver ? failure : warning)(reasons, `\`postern email why ${email.id}\` shows the whole dialogue`);
}

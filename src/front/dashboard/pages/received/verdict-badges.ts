/** The verdicts on a received mail as badges. */
import type { AuthenticationResult, ReceivedSummary } from '#mail/received/received-mail.ts';

interface VerdictBadge {
  tone: 'good' | 'bad' | 'quiet';
  text: string;
  /** Of whom. */
  detail: string | null;
}

export function verdictBadges({
  verdicts,
  spam,
}: Pick<ReceivedSummary, 'verdicts' | 'spam'>): VerdictBadge[] {
  const { spf, dkim, dmarc, arc } = verdicts;
  const signature = dkim.find(({ result }) => result === 'pass') ?? dkim[0];
  return [
    badge('SPF', spf.result, spf.domain),
    badge('DKIM', signature?.result ?? 'none', signature?.domain ?? null),
    badge(
      'DMARC',
      dmarc.result,
      dmarc.policy === null ? dmarc.domain : `${dmarc.domain}, policy ${dmarc.policy}`,
    ),
    ...(arc.result === 'none' ? [] : [badge('ARC', arc.result, null)]),
    ...(spam === null ? [] : [spamBadge(spam)]),
  ];
}

function badge(name: string, result: AuthenticationResult, detail: string | null): VerdictBadge {
  const tone = result === 'pass' ? 'good' : result === 'fail' ? 'bad' : 'quiet';
  return { tone, text: `${name} ${result}`, detail };
}

function spamBadge({ isSpam, score, threshold }: NonNullable<ReceivedSummary['spam']>): VerdictBadge {
  return {
    tone: isSpam ? 'bad' : 'good',
    text: isSpam ? 'Spam' : 'No spam',
    detail: `score ${score} of ${threshold}`,
  };
}

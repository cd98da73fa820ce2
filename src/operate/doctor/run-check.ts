/** Runs a check: an error that it throws becomes a finding. */
import { Unanswered } from './doctor-dns.ts';
import { type Check, type FindingDraft, failure, skipped, warning } from './finding.ts';

export async function findingOf({ run }: Pick<Check, 'run'>): Promise<FindingDraft> {
  try {
    return await run();
  } catch (error) {
    const { message } = error as Error;
    if (!(error instanceof Unanswered))
      return failure(`the check itself failed: ${message}`, 'report this as a bug in Postern');
    if (error.noServerAnswers) return skipped(`not known: ${message}`);
    return warning(
      message,
      'if this persists, receivers get no answer either: check the name servers of that name and its DNSSEC signatures',
    );
  }
}

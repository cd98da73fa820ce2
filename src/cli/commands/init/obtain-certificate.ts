/**
 * The certificate of the server's name. The running server gets it; this step has it look at once after DNS was wrong, and waits
 * until it is there or the authority has refused.
 */

import { Failure } from '#cli/failure.ts';
import { waitFor } from '#cli/wait-for.ts';
import {
  type ListedCertificate,
  listCertificates,
  retryHost,
} from '#operate/certificates/rows/certificates-table.ts';
import { certificateState } from '#operate/condition/certificate-state.ts';
import { failure, ok } from '#operate/doctor/finding.ts';
import { iso } from '#platform/base/clock.ts';
import { acmeSettingsOf } from '#platform/settings/acme-settings.ts';
import type { SetUp } from './set-up.ts';
import type { Step } from './step.ts';

/** The server looks for what is due every ten seconds, and an order takes some seconds. */
const maxWaitMs = 180_000;

export function certificateStep(setUp: SetUp, needs: Step[]): Step {
  const { context, answers } = setUp;
  const { hostname } = answers;

  async function read() {
    const now = context.now();
    const [row] = await listCertificates(await context.db(), { host: hostname, now, limit: 1 });
    const isValid = row?.notAfter != null && row.notAfter > now;
    return { row, valid: isValid ? ok(`valid until ${iso(row.notAfter!)}`) : null };
  }

  function refused(row: ListedCertificate) {
    const { figure, advice } = certificateState(row, answers, context.now());
    return failure(figure, advice!);
  }

  return {
    what: 'obtain the certificate',
    needs,
    isDone: async () => (await read()).valid,
    async do() {
      const { row: before } = await read();
      if (before?.problem) {
        const { type, settings } = before.problem;
        const isCorrected = settings !== undefined && settings !== acmeSettingsOf(context.config());
        // After a refusal, the authority's limits decide when it may be asked again.
        if (!type.startsWith('dns-') && !isCorrected) return refused(before);
        await retryHost(await context.db(), hostname, context.now());
      }
      const found = await waitFor(
        { ...setUp, waitMs: Math.min(setUp.waitMs, maxWaitMs) },
        () => `the certificate of ${hostname}`,
        async () => {
          const { row, valid } = await read();
          const isRefused = row?.problem && row.problem.at !== before?.problem?.at;
          return valid ?? (isRefused ? refused(row) : null);
        },
      );
      if (found !== null) return found;
      throw new Failure('the server has not got it yet');
    },
    cure: 'the server goes on trying; its log says why it has none',
  };
}

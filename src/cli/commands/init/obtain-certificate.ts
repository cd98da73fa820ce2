/**
 * The certificate of the server's name. The running server gets it; this step has it look at once after DNS was wrong, and waits
 * until it is there or the authority has refused.
 */
import { iso } from '../../../base/clock.ts';
import {
  type CertificateProblem,
  postponeAttempt,
  readHostState,
} from '../../../db/accounts/certificates-table.ts';
import { ok } from '../../../operate/doctor/finding.ts';
import { Failure } from '../../failure.ts';
import { waitFor } from '../../wait-for.ts';
import type { SetUp } from './set-up.ts';
import type { Step } from './step.ts';

/** The server looks for what is due every ten seconds, and an order takes some seconds. */
const maxWaitMs = 180_000;

export function certificateStep(setUp: SetUp, needs: Step[]): Step {
  const { context, answers } = setUp;
  const { hostname } = answers;

  async function read() {
    const state = await readHostState(await context.db(), hostname);
    const isValid = state?.notAfter != null && state.notAfter > context.now();
    return {
      problem: state?.problem ?? null,
      valid: isValid ? ok(`valid until ${iso(state.notAfter!)}`) : null,
    };
  }

  return {
    what: 'obtain the certificate',
    needs,
    isDone: async () => (await read()).valid,
    async do() {
      const { problem: before } = await read();
      // After a refusal, the authority's limits decide when it may be asked again.
      if (before && !isOfDns(before)) throw refusalOf(before);
      if (before) await postponeAttempt(await context.db(), hostname, context.now());
      const found = await waitFor(
        { ...setUp, waitMs: Math.min(setUp.waitMs, maxWaitMs) },
        () => `the certificate of ${hostname}`,
        async () => {
          const { valid, problem } = await read();
          return valid ?? (problem !== null && problem.at !== before?.at ? problem : null);
        },
      );
      if (found === null) throw new Failure('the server has not got it yet');
      if ('verdict' in found) return found;
      throw refusalOf(found);
    },
    cure: 'the server goes on trying; its log says why it has none',
  };
}

const isOfDns = ({ type }: CertificateProblem) => type.startsWith('dns-');

function refusalOf(problem: CertificateProblem): Failure {
  const cure = isOfDns(problem)
    ? 'publish its address; the server then tries again by itself'
    : 'check that ports 80 and 443 can be reached from outside; the server tries again by itself';
  return new Failure(`${problem.text.replaceAll(';', ',')}; ${cure}`);
}

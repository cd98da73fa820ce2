/** Turns on the notices by mail, once a domain is verified that they can be sent from. */
import { ok, warning } from '#operate/doctor/finding.ts';
import type { SetUp } from './set-up.ts';
import { type GivenSettings, restart, writeSettings } from './settings-file.ts';
import type { Step } from './step.ts';

/** `restartService`: null if nothing here can restart the server. */
export function noticesStep(
  { answers }: SetUp,
  { path, values }: GivenSettings,
  needs: Step[],
  restartService: (() => Promise<void>) | null,
): Step {
  const setting = { POSTERN_NOTICES_FROM: `postern@${answers.domain}` };
  const text = `POSTERN_NOTICES_FROM=${setting.POSTERN_NOTICES_FROM}`;
  const given = values.POSTERN_NOTICES_FROM;
  return {
    what: 'mail problems to you',
    plan: `${text} in ${path ?? 'the environment'}`,
    needs,
    isDone: async () => (given ? ok(given === 'off' ? 'turned off' : `they are sent from ${given}`) : null),
    async do() {
      if (path === null)
        return warning(
          'problems are not mailed: POSTERN_NOTICES_FROM is not set',
          `add ${text} to the environment of the server and restart it`,
        );
      writeSettings(path, setting);
      if (restartService === null) return warning(`wrote ${text}`, restart);
      await restartService();
      return ok(
        `problems that need action are mailed to ${answers.email}, from ${setting.POSTERN_NOTICES_FROM}`,
      );
    },
    cure: 'check the owner and the permissions of the settings file',
  };
}

/**
 * Test mail: mail sent with a test key. It takes the path of all mail, with the same checks and answers, up to deliver.ts,
 * where a simulated host answers instead of a real one (mail/deliver/smtp-out/simulated-host.ts). It is never connected to
 * anything, and counts for no suppression, no statistics and no credits.
 */

/**
 * The `domain` of every delivery of test mail, whatever its recipient: so test mail has a backlog, a ready queue and a
 * destination of its own, and never affects those of real mail. No recipient can have this domain, because it has one label.
 */
export const testRoute = 'test';

/** Recipients at this domain decide how test mail to them ends. `.test` is reserved (RFC 6761), so no real mail goes there. */
export const testDomain = 'postern.test';

/**
 * Test mail to this domain is received by the organization that sends it, as mail for an application that comes in, and so is a
 * received test mail: a test key reads those, and no others.
 */
export const receivedTestDomain = 'received.test';

export function isReceivedTest({ domain }: { domain: string }): boolean {
  return domain === receivedTestDomain;
}

export function isTestMail({ domain }: { domain: string }): boolean {
  return domain === testRoute;
}

/** Time passes this much faster for test mail: its 48 hours of attempts take a minute. */
const speed = 2880;
const minWaitMs = 1000;

export const testMaxAge = (maxAgeMs: number): number => Math.max(maxAgeMs / speed, minWaitMs);

export function testWaits(waits: readonly number[]): number[] {
  return waits.map((ms) => Math.max(ms / speed, minWaitMs));
}

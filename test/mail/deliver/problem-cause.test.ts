/** What a failed attempt says of its destination: whose trouble it is, as the operator acts on it. */
import test from 'ava';
import { classify, type SessionResult } from '#mail/deliver/outcome.ts';
import { type ProblemCause, problemCause } from '#mail/deliver/problem-cause.ts';
import type { Attempt, Reply } from '#platform/values/glossary.ts';

const reply = (code: number, enhanced: string | null, text: string): Reply => ({ code, enhanced, text });

const refused = (of: Reply): SessionResult => ({ kind: 'refused', phase: 'rcpt', reply: of });
const unreachable = (detail: string): SessionResult => ({ kind: 'unreachable', detail });

const cases: Record<string, [SessionResult, ProblemCause | null]> = {
  'their disk is full': [refused(reply(452, '4.3.1', 'Insufficient system storage')), 'storage_full'],
  'full by its status alone': [refused(reply(452, '4.3.1', 'Temporary System Error')), 'storage_full'],
  'full by its words alone': [refused(reply(452, '4.4.5', 'Insufficient disk space')), 'storage_full'],
  'a full mailbox': [refused(reply(452, '4.2.2', 'The account is over quota')), null],
  busy: [refused(reply(421, '4.4.5', 'Server busy, try again later.')), 'throttled'],
  'not now': [refused(reply(421, '4.3.2', 'not now')), 'throttled'],
  refused: [unreachable('192.0.2.1 refused the connection'), 'unreachable'],
  'no route of ours': [unreachable('2001:db8::1 cannot be reached (no route to its network)'), 'no_route'],
  'our firewall': [
    unreachable(
      '192.0.2.1 was not called: the connection is forbidden by this machine, such as by its firewall',
    ),
    'no_route',
  ],
  'no answer': [unreachable('192.0.2.1 did not answer within 30 s; timed out'), 'hanging'],
};

for (const [name, [result, cause]] of Object.entries(cases))
  test(`${name}: ${cause}`, (t) => {
    const { verdict, signal } = classify(result);
    const attempt = { verdict, signal, reply: 'reply' in result ? result.reply : null };
    t.is(problemCause(attempt as Attempt), cause);
  });

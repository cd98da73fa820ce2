/** THE table, row by row: what was seen, its outcome, and whether another host may be asked. */
import test from 'ava';
import { table } from '#lab/table.ts';
import { classify, type SessionResult } from '#mail/deliver/outcome.ts';
import type { Phase } from '#platform/values/glossary.ts';
import { parseReply } from '#platform/values/reply.ts';

/** A classification in one line: outcome, category, fault, hard or soft or -, origin, `next` or `stop`, what of the host. */
function row(result: SessionResult): string {
  const { verdict, tryNextHost, signal } = classify(result);
  const { category, fault, bounce, origin, possibleDuplicate } = verdict;
  const words = [
    verdict.outcome,
    category ?? '-',
    fault ?? '-',
    bounce ?? '-',
    origin,
    tryNextHost ? 'next' : 'stop',
    signal ?? '-',
  ];
  return [...words, ...(possibleDuplicate ? ['duplicate?'] : [])].join(' ');
}

const refused = (phase: Phase, text: string): SessionResult => ({
  kind: 'refused',
  phase,
  reply: parseReply(text)!,
});

const detail = 'what happened';

const withoutReply: [what: string, result: SessionResult, expected: string][] =
  table('delivery/without-reply');

const cut = ['lost', 'timeout', 'not-smtp', 'interrupted', 'internal'] as const;
const cutRows: Record<(typeof cut)[number], [before: string, afterDot: string]> = {
  lost: ['deferred network infrastructure - remote next', 'deferred network infrastructure - remote stop'],
  timeout: ['deferred network infrastructure - remote next', 'deferred network infrastructure - remote stop'],
  'not-smtp': [
    'deferred protocol infrastructure - remote next',
    'deferred protocol infrastructure - remote stop',
  ],
  interrupted: [
    'deferred interrupted infrastructure - local stop',
    'deferred interrupted infrastructure - local stop',
  ],
  internal: [
    'deferred internal infrastructure - local stop',
    'deferred internal infrastructure - local stop',
  ],
};

for (const [what, result, expected] of withoutReply) {
  test(`${result.kind}: ${what}`, (t) => {
    t.is(row(result), expected);
    t.is(classify(result).verdict.diagnostic, detail);
    t.is(classify(result).verdict.rule, result.kind, 'what `email why` shows');
  });
}

for (const kind of cut) {
  test(`${kind}: before the final dot another host may do better, after it a duplicate is possible`, (t) => {
    const [before, afterDot] = cutRows[kind];
    const atGreeting = ['lost', 'timeout', 'not-smtp'].includes(kind) ? 'dead' : '-';
    for (const phase of ['greeting', 'ehlo', 'starttls', 'mail', 'rcpt', 'data', 'dot'] as const) {
      const host = phase === 'greeting' ? atGreeting : '-';
      t.is(row({ kind, phase, detail, afterDot: false } as SessionResult), `${before} ${host}`, phase);
    }
    t.is(row({ kind, phase: 'dot', detail, afterDot: true } as SessionResult), `${afterDot} - duplicate?`);
  });
}

test('an accepted mail is delivered, whatever the reply says besides', (t) => {
  const result: SessionResult = { kind: 'accepted', reply: parseReply('250 2.0.0 queued as 4711')! };
  t.is(row(result), 'delivered - - - remote stop working');
  t.is(classify(result).verdict.diagnostic, '250 2.0.0 queued as 4711');
  t.is(
    row({ kind: 'accepted', reply: parseReply('250 greylisted, but taken')! }),
    'delivered - - - remote stop working',
  );
});

const refusals: [Phase, reply: string, expected: string][] = table('delivery/refusals');

for (const [phase, reply, expected] of refusals) {
  test(`refused at ${phase}: ${reply}`, (t) => {
    t.is(row(refused(phase, reply)), expected);
    t.is(classify(refused(phase, reply)).verdict.diagnostic, reply, 'the reply is the evidence');
  });
}

/** Each enhanced code, as a 550 at RCPT has it, with what it tells of the host. */
const enhanced: [codes: string, expected: string, host: string][] = table('delivery/enhanced-codes');

for (const [codes, expected, host] of enhanced) {
  test(`${codes}: ${expected}`, (t) => {
    for (const code of codes.split(' ')) {
      t.is(row(refused('rcpt', `550 ${code} no`)), `bounced ${expected} remote stop ${host}`, code);
    }
  });
}

test('a code about the recipient in reply to MAIL never suppresses: it is about the sender', (t) => {
  for (const reply of ['550 5.1.1 user unknown', '550 5.2.1 disabled', '550 5.1.2 no such domain']) {
    const { verdict } = classify(refused('mail', reply));
    t.is(verdict.outcome, 'bounced', reply);
    t.is(verdict.bounce, 'soft', reply);
  }
});

test('an address that the reply quotes is not read as words of the server', (t) => {
  const reply = '550 5.1.1 <spam.policy@greylist.blacklist.example>: nobody';
  t.is(classify(refused('rcpt', reply)).verdict.rule, 'status-unknown-user');
});

test('the status in the text counts where qmail puts it', (t) => {
  t.is(row(refused('rcpt', '554 sorry (#5.2.2)')), 'bounced mailbox_full recipient soft remote stop working');
  t.is(row(refused('rcpt', '554 sorry (#4.2.2)')), 'deferred mailbox_full recipient - remote next working');
});

test('nothing but a permanent reply or a plain answer of DNS bounces a mail', (t) => {
  const kinds = [...withoutReply.map(([, result]) => result)].filter(
    (result) => classify(result).verdict.outcome === 'bounced',
  );
  t.deepEqual(kinds.map(({ kind }) => kind).sort(), [
    'no-8bitmime',
    'no-mail-host',
    'no-smtputf8',
    'no-utf8-header',
    'null-mx',
    'too-big',
  ]);
});

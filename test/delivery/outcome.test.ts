/** THE table, row by row: what was seen, its outcome, and whether another host may be asked. */
import test from 'ava';
import { classify, type Phase, type SessionResult } from '../../src/outcome.ts';
import { parseReply } from '../../src/smtp-out/reply.ts';

/** A classification in one line: outcome, category, fault, hard or soft or -, origin, `next` or `stop`, what of the host. */
function row(result: SessionResult): string {
  const { outcome, tryNextHost, signal } = classify(result);
  const { category, fault, bounce, origin, possibleDuplicate } = outcome;
  const words = [
    outcome.outcome,
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

const withoutReply: [what: string, result: SessionResult, expected: string][] = [
  ['nothing answers', { kind: 'unreachable', detail }, 'deferred network infrastructure - remote next dead'],
  [
    'TLS fails',
    { kind: 'tls-failed', isPassing: true, mayBeOld: false, detail },
    'deferred tls infrastructure - remote next -',
  ],
  ['larger than they take', { kind: 'too-big', detail }, 'bounced size content soft remote stop well'],
  ['no SMTPUTF8', { kind: 'no-smtputf8', detail }, 'bounced protocol recipient hard remote next well'],
  [
    'no SMTPUTF8 for a header',
    { kind: 'no-utf8-header', detail },
    'bounced protocol content soft remote next well',
  ],
  ['null MX', { kind: 'null-mx', detail }, 'bounced dns recipient hard remote stop -'],
  ['no such domain', { kind: 'no-mail-host', detail }, 'bounced dns recipient hard remote stop -'],
  ['DNS does not know', { kind: 'dns-failed', detail }, 'deferred dns infrastructure - remote next dead'],
  [
    'TLS demanded, and not given',
    { kind: 'tls-required', detail },
    'deferred tls infrastructure - remote next -',
  ],
  ['not tried', { kind: 'withheld', detail }, 'deferred withheld infrastructure - local stop -'],
  ['private addresses', { kind: 'private-address', detail }, 'deferred policy infrastructure - local stop -'],
];

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
    t.is(classify(result).outcome.diagnostic, detail);
    t.is(classify(result).outcome.rule, result.kind, 'what `email why` shows');
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

test('accepted: delivered, whatever the reply says besides', (t) => {
  const result: SessionResult = { kind: 'accepted', reply: parseReply('250 2.0.0 queued as 4711')! };
  t.is(row(result), 'delivered - - - remote stop well');
  t.is(classify(result).outcome.diagnostic, '250 2.0.0 queued as 4711');
  t.is(
    row({ kind: 'accepted', reply: parseReply('250 greylisted, but taken')! }),
    'delivered - - - remote stop well',
  );
});

const refusals: [Phase, reply: string, expected: string][] = [
  // The host's own word, before the mail: another one may serve.
  ['greeting', '554 no service here', 'deferred unavailable infrastructure - remote next dead'],
  ['greeting', '554 5.7.1 your address is on a list', 'deferred policy sender - remote next dead'],
  ['greeting', '521 5.3.2 takes no mail', 'deferred unavailable infrastructure - remote next dead'],
  ['greeting', '421 4.3.2 too busy', 'deferred unavailable infrastructure - remote next throttled'],
  ['ehlo', '550 who are you', 'deferred unavailable infrastructure - remote next -'],
  ['ehlo', '504 5.5.2 bad name', 'deferred protocol infrastructure - remote next -'],
  ['starttls', '454 4.7.0 not now', 'deferred tls infrastructure - remote next -'],
  ['starttls', '554 5.7.0 never', 'deferred tls infrastructure - remote next -'],
  // Not now.
  ['mail', '421 4.4.2 closing', 'deferred network infrastructure - remote next throttled'],
  ['mail', '451 later', 'deferred unavailable infrastructure - remote next -'],
  ['rcpt', '421 closing', 'deferred unavailable infrastructure - remote next throttled'],
  ['rcpt', '450 4.2.0 busy mailbox', 'deferred unavailable recipient - remote next well'],
  ['rcpt', '451 4.7.1 Greylisted, try again', 'deferred greylisting infrastructure - remote next -'],
  ['rcpt', '450 4.2.0 you have been gray-listed', 'deferred greylisting infrastructure - remote next -'],
  ['rcpt', '452 4.2.2 full', 'deferred mailbox_full recipient - remote next well'],
  ['rcpt', '452 4.5.3 too many recipients', 'deferred rate_limit infrastructure - remote next -'],
  ['data', '451 4.3.0 later', 'deferred unavailable infrastructure - remote next -'],
  ['dot', '451 4.7.0 later', 'deferred policy sender - remote next throttled'],
  ['dot', '452 4.3.1 disk full', 'deferred unavailable infrastructure - remote next throttled'],
  ['dot', '421 4.3.0 stopping', 'deferred unavailable infrastructure - remote next throttled'],
  // Never.
  ['mail', '550 5.7.1 not from you', 'bounced policy sender soft remote stop well'],
  ['mail', '553 5.1.8 your domain does not exist', 'bounced policy sender soft remote stop well'],
  ['mail', '550 no', 'bounced other infrastructure soft remote stop -'],
  ['mail', '552 5.3.4 too big', 'bounced size content soft remote stop well'],
  ['rcpt', '550 no such user', 'bounced unknown_user recipient hard remote stop well'],
  ['rcpt', '551 not here', 'bounced unknown_user recipient soft remote stop well'],
  ['rcpt', '553 not a mailbox', 'bounced unknown_user recipient soft remote stop well'],
  ['rcpt', '550 5.0.0 no', 'bounced unknown_user recipient soft remote stop well'],
  ['rcpt', '550 5.1.1 no such user', 'bounced unknown_user recipient hard remote stop well'],
  ['rcpt', '554 5.7.1 refused', 'bounced policy sender soft remote stop well'],
  ['data', '554 no valid recipients', 'bounced other infrastructure soft remote stop -'],
  ['dot', '550 5.7.26 not authenticated', 'bounced auth sender soft remote stop well'],
  ['dot', '554 5.6.0 malformed', 'bounced content content soft remote stop well'],
  ['dot', '554 refused', 'bounced other infrastructure soft remote stop -'],
  ['dot', '550 5.1.1 no such user', 'bounced unknown_user recipient hard remote stop well'],
  ['dot', '552 too large', 'bounced mailbox_full recipient soft remote stop well'],
  // At RCPT, but not about the mailbox.
  ['rcpt', '554 blocked', 'bounced other infrastructure soft remote stop -'],
  ['rcpt', '503 MAIL first', 'bounced protocol infrastructure soft remote stop -'],
  ['rcpt', '501 syntax', 'bounced protocol infrastructure soft remote stop -'],
  ['rcpt', '555 parameters', 'bounced protocol infrastructure soft remote stop -'],
  // RFC 5321 section 4.5.3.1.10.
  ['rcpt', '552 too many recipients', 'deferred rate_limit infrastructure - remote next -'],
  ['rcpt', '552 5.2.2 full', 'bounced mailbox_full recipient soft remote stop well'],
  ['rcpt', '552 5.3.4 too big', 'bounced size content soft remote stop well'],
  // The code and its enhanced code disagree: doubt.
  ['rcpt', '550 4.1.1 perhaps', 'deferred unknown_user recipient - remote next well'],
  ['rcpt', '550 2.1.5 fine', 'deferred unknown_user recipient - remote next well'],
  ['dot', '554 4.7.1 later', 'deferred policy sender - remote next well'],
  ['rcpt', '450 5.1.1 perhaps', 'deferred unknown_user recipient - remote next well'],
  ['rcpt', '552 4.2.2 full', 'deferred mailbox_full recipient - remote next well'],
  // A reply to a question that has none.
  ['rcpt', '354 go ahead', 'deferred unavailable infrastructure - remote next -'],
  ['quit', '500 what', 'deferred protocol infrastructure - remote next -'],
];

for (const [phase, reply, expected] of refusals) {
  test(`refused at ${phase}: ${reply}`, (t) => {
    t.is(row(refused(phase, reply)), expected);
    t.is(classify(refused(phase, reply)).outcome.diagnostic, reply, 'the reply is the evidence');
  });
}

/** Each enhanced code, as a 550 at RCPT has it, with what it tells of the host. */
const enhanced: [codes: string, expected: string, host: string][] = [
  ['5.1.1 5.1.3 5.1.6', 'unknown_user recipient hard', 'well'],
  ['5.1.2 5.1.10 5.4.4', 'dns recipient hard', 'well'],
  ['5.1.7 5.1.8', 'policy sender soft', 'well'],
  ['5.2.1 5.7.13', 'mailbox_disabled recipient hard', 'well'],
  ['5.2.2', 'mailbox_full recipient soft', 'well'],
  ['5.2.3 5.3.4', 'size content soft', 'well'],
  ['5.2.0 5.2.4', 'unavailable recipient soft', 'well'],
  ['5.3.0 5.3.1 5.3.2 5.3.3 5.3.5', 'unavailable infrastructure soft', '-'],
  ['5.4.0 5.4.1 5.4.3', 'network infrastructure soft', '-'],
  ['5.4.6 5.4.14', 'loop infrastructure soft', 'well'],
  ['5.5.0 5.5.1 5.5.3 5.5.6', 'protocol infrastructure soft', '-'],
  ['5.6.0 5.6.1 5.6.7', 'content content soft', 'well'],
  ['5.7.20 5.7.23 5.7.25 5.7.26 5.7.29 5.7.30 5.7.31 5.7.40', 'auth sender soft', 'well'],
  ['5.7.28', 'rate_limit sender soft', 'throttled'],
  ['5.7.0 5.7.1 5.7.2 5.7.19 5.7.33 5.7.606', 'policy sender soft', 'well'],
  // No word says that the mailbox does not exist: it bounces, but is not suppressed.
  ['5.0.0 5.1.0 5.1.4 5.1.9 5.9.9', 'unknown_user recipient soft', 'well'],
];

for (const [codes, expected, host] of enhanced) {
  test(`${codes}: ${expected}`, (t) => {
    for (const code of codes.split(' ')) {
      t.is(row(refused('rcpt', `550 ${code} no`)), `bounced ${expected} remote stop ${host}`, code);
    }
  });
}

test('a code about the recipient at MAIL is about the sender: it never suppresses', (t) => {
  for (const reply of ['550 5.1.1 user unknown', '550 5.2.1 disabled', '550 5.1.2 no such domain']) {
    const { outcome } = classify(refused('mail', reply));
    t.is(outcome.outcome, 'bounced', reply);
    t.is(outcome.bounce, 'soft', reply);
  }
});

test("the words of an address are not the server's", (t) => {
  const reply = '550 5.1.1 <spam.policy@greylist.blacklist.example>: nobody';
  t.is(classify(refused('rcpt', reply)).outcome.rule, 'status-unknown-user');
});

test('the status in the text counts where qmail puts it', (t) => {
  t.is(row(refused('rcpt', '554 sorry (#5.2.2)')), 'bounced mailbox_full recipient soft remote stop well');
  t.is(row(refused('rcpt', '554 sorry (#4.2.2)')), 'deferred mailbox_full recipient - remote next well');
});

test('nothing but a permanent reply or a plain answer of DNS bounces a mail', (t) => {
  const kinds = [...withoutReply.map(([, result]) => result)].filter(
    (result) => classify(result).outcome.outcome === 'bounced',
  );
  t.deepEqual(kinds.map(({ kind }) => kind).sort(), [
    'no-mail-host',
    'no-smtputf8',
    'no-utf8-header',
    'null-mx',
    'too-big',
  ]);
});

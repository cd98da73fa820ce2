/** The demands of Gmail, Yahoo and Outlook.com as a table, and who is a bulk sender: pure, by numbers. */
import test from 'ava';
import type { MailboxDay } from '#mail/record/rows/mailbox-days.ts';
import { lastReports } from '#operate/sender-rules/feedback-loops.ts';
import { askingProviders, demands, senderRules, standingOf } from '#operate/sender-rules/rules.ts';
import { standingsOf, volumesOf } from '#operate/sender-rules/volumes.ts';
import { type MailboxProvider, mailboxProviderOf } from '#platform/values/mailbox-provider.ts';

test('the standing follows from the largest day', (t) => {
  for (const [most, standing] of [
    [0, 'small'],
    [3_999, 'small'],
    [4_000, 'near'],
    [4_999, 'near'],
    [5_000, 'bulk'],
    [1e9, 'bulk'],
  ] as const)
    t.is(standingOf(most), standing, String(most));
});

test('what is demanded of bulk senders is demanded from nearly as much on; what is recommended never is', (t) => {
  const small = { gmail: 'small', yahoo: 'small', microsoft: 'small' } as const;
  t.deepEqual(askingProviders('dmarc', small), []);
  t.deepEqual(askingProviders('dkim', small), ['gmail', 'yahoo']);
  t.deepEqual(askingProviders('ptr', small), ['gmail', 'yahoo', 'microsoft']);
  t.deepEqual(askingProviders('dmarc', { ...small, gmail: 'near' }), ['gmail']);
  t.deepEqual(askingProviders('oneClick', { gmail: 'bulk', yahoo: 'bulk', microsoft: 'bulk' }), [
    'gmail',
    'yahoo',
  ]);
  for (const demand of demands) t.true(Object.keys(senderRules[demand].askedBy).length > 0, demand);
});

test('personal mailboxes are those of the provider’s own domains', (t) => {
  const cases: [domain: string, provider: MailboxProvider | null][] = [
    ['gmail.com', 'gmail'],
    ['googlemail.com', 'gmail'],
    ['google.com', null],
    ['gmail.com.example', null],
    ['mail.gmail.com', null],
    ['yahoo.com', 'yahoo'],
    ['yahoo.co.uk', 'yahoo'],
    ['yahoo.com.br', 'yahoo'],
    ['yahoo.co.jp', null],
    ['aol.com', 'yahoo'],
    ['outlook.com', 'microsoft'],
    ['hotmail.co.uk', 'microsoft'],
    ['live.nl', 'microsoft'],
    ['msn.com', 'microsoft'],
    ['microsoft.com', null],
    ['hotmail.example.com', null],
    ['', null],
  ];
  for (const [domain, provider] of cases) t.is(mailboxProviderOf(domain), provider, domain);
});

test('volumes are of one registered domain: its largest day, and its complaints in all', (t) => {
  const of = (provider: MailboxProvider, day: number, sent: number, domain = 'a.example'): MailboxDay => ({
    provider,
    domain,
    day,
    sent,
    delivered: sent - 1,
    complained: 2,
  });
  const days = [
    of('gmail', 1, 10),
    of('gmail', 2, 6_000),
    of('yahoo', 2, 4_500),
    of('gmail', 3, 9, 'b.example'),
  ];
  const volumes = volumesOf(days, 'a.example');
  t.deepEqual(volumes[0], { provider: 'gmail', most: 6_000, day: 2, delivered: 6_008, complained: 4 });
  t.deepEqual(volumes[2], { provider: 'microsoft', most: 0, day: null, delivered: 0, complained: 0 });
  t.deepEqual(standingsOf(volumes), { gmail: 'bulk', yahoo: 'near', microsoft: 'small' });
});

test('the last report of each loop is the latest, in any order', (t) => {
  const last = lastReports([
    { name: 'yahoo.com', at: 5 },
    { name: 'aol.com', at: 9 },
    { name: 'yahoo.com', at: 7 },
    { name: 'there.example', at: 3 },
    { name: '', at: 4 },
  ]);
  t.deepEqual(last, { yahoo: 9, microsoft: null, others: 4 });
});

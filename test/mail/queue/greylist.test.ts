/** Greylisting: what is learned of a delay that nobody tells, and how soon the mails after the first come through. */
import test from 'ava';
import { type Greylisting, learn, nothingLearned, waitFor } from '#mail/queue/greylist.ts';
import { nextAttemptAt } from '#mail/queue/schedule.ts';

const second = 1000;
const minute = 60 * second;

const refused = (known: Greylisting, waitedMs: number) => learn(known, { outcome: 'refused', waitedMs });
const accepted = (known: Greylisting, waitedMs: number) => learn(known, { outcome: 'accepted', waitedMs });
const between = (refusedAfterMs: number, acceptedAfterMs: number | null) => ({
  refusedAfterMs,
  acceptedAfterMs,
});

test('the longest refused wait and the shortest that passed are kept', (t) => {
  let known = refused(nothingLearned, 30 * second);
  t.deepEqual(known, between(30 * second, null));
  known = accepted(refused(known, 150 * second), 450 * second);
  t.deepEqual(known, between(150 * second, 450 * second));
  t.deepEqual(accepted(known, 310 * second), between(150 * second, 310 * second));
  t.deepEqual(refused(known, 200 * second), between(200 * second, 450 * second));
});

test('an observation that changes nothing is not stored again', (t) => {
  const known = between(150 * second, 450 * second);
  for (const waited of [0, 60 * second, 155 * second]) t.is(refused(known, waited), known);
  for (const waited of [445 * second, 450 * second, 900 * second]) t.is(accepted(known, waited), known);
  t.is(refused(nothingLearned, 0), nothingLearned, 'the first refusal says nothing of the delay');
});

test('the latest refusal is believed before an older success', (t) => {
  t.deepEqual(refused(between(0, 5 * minute), 6 * minute), between(6 * minute, null));
});

test('a success sooner than a refusal says nothing: the recipient may have become known', (t) => {
  const known = between(5 * minute, 10 * minute);
  t.is(accepted(known, minute), known);
});

test('a wait of much more than an hour is not taken for greylisting', (t) => {
  t.is(refused(nothingLearned, 2 * 60 * minute), nothingLearned);
  t.is(accepted(nothingLearned, 4 * 60 * minute), nothingLearned);
});

test('until a mail has passed there is no wait to give', (t) => {
  t.is(waitFor(nothingLearned, 0), null);
  t.is(waitFor(between(150 * second, null), 0), null);
});

test('the next wait is the smallest usual delay between, and a little', (t) => {
  t.is(waitFor(between(150 * second, 450 * second), 0), 190 * second);
  t.is(waitFor(between(200 * second, 450 * second), 0), 310 * second);
  t.is(
    waitFor(between(200 * second, 450 * second), 200 * second),
    110 * second,
    'counted from the first attempt',
  );
});

test('with no usual delay between, the wait is what is known to pass', (t) => {
  t.is(waitFor(between(0, 30 * second), 0), 30 * second);
  t.is(waitFor(between(200 * second, 305 * second), 0), 305 * second);
});

test('a mail that is refused longer than what is known to pass has the ordinary waits', (t) => {
  t.is(waitFor(between(200 * second, 305 * second), 305 * second), null);
});

/** Sends mails to a host that takes them `delay` after their first attempt; answers each mail's attempts and age. */
function sendMails(count: number, delay: number, random: () => number) {
  const waits = [30, 120, 300, 600, 1200, 2400, 3600].map((wait) => wait * second);
  let known = nothingLearned;
  return Array.from({ length: count }, () => {
    let [attempts, age] = [1, 0];
    while (age < delay) {
      known = refused(known, age);
      const hintMs = waitFor(known, age);
      age = nextAttemptAt({ waits, random }, { attempts, now: age, expiresAt: 48 * 60 * minute, hintMs })!;
      attempts += 1;
    }
    known = accepted(known, age);
    return { attempts, age };
  });
}

for (const delay of [60, 120, 180, 240, 300, 420, 600, 900, 1500, 1800, 3600].map((each) => each * second)) {
  test(`a delay of ${delay / minute} minutes is found, and then the second attempt passes`, (t) => {
    for (const random of [() => 0, () => 0.5, () => 0.999, Math.random]) {
      const mails = sendMails(12, delay, random);
      const { attempts, age } = mails.at(-1)!;
      t.is(attempts, 2);
      t.true(age < delay * 2 + minute, `age ${age / second} s`);
      for (const mail of mails.slice(1)) t.true(mail.attempts <= mails[0]!.attempts, JSON.stringify(mails));
    }
  });
}

test('the second mail to a host that greylists for five minutes needs one attempt fewer', (t) => {
  const attempts = sendMails(3, 5 * minute, () => 0.5).map((mail) => mail.attempts);
  t.deepEqual(attempts, [4, 3, 2]);
});

import test from 'ava';
import { unpackJson } from '#platform/database/engine/packed-json.ts';

test('the dictionary is that of the records in databases', (t) => {
  // Packed by the first version. If this fails, the dictionary was changed: give the new one another number, and keep this one.
  t.deepEqual(unpackJson(Buffer.from('011b14259289b9a1a112e9650b16336a01', 'hex')), {
    outcome: {
      outcome: 'delivered',
      category: null,
      fault: null,
      bounce: null,
      origin: 'remote',
      diagnostic: '250 2.0.0 Ok: queued as 4711',
    },
    reply: { code: 250, enhanced: '2.0.0', text: 'Ok: queued as 4711' },
  });
  t.throws(() => unpackJson(Buffer.of(2, 1, 2, 3)), { message: /unknown dictionary 2/ });
});

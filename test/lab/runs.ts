import fc from 'fast-check';

/** How many examples a property test tries: all of them in `npm run test:slow`, a tenth of them in `npm test`. */
export function runs(count: number): number {
  return process.env.TEST_SLOW ? count : Math.min(count, Math.max(20, Math.ceil(count / 10)));
}

/** Any code points; fast-check's own unit `binary` makes a map of all of them first, a second of CPU time. */
export function anyText(maxLength: number): fc.Arbitrary<string> {
  const codes = fc.array(fc.integer({ min: 0, max: 0x10ffff }), { maxLength });
  return codes.map((list) => String.fromCodePoint(...list).toWellFormed());
}

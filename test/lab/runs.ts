/** How many examples a property test tries: all of them in `npm run test:slow`, a tenth of them in `npm test`. */
export function runs(count: number): number {
  return process.env.TEST_SLOW ? count : Math.min(count, Math.max(20, Math.ceil(count / 10)));
}

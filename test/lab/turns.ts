/**
 * Whether a case of a walk has its turn: in `npm test` each `of`th, by the sum of what numbers the case (the route, the visitor),
 * so that each route is asked by some and each visitor asks for some; in `npm run test:slow` all.
 */
export function hasTurn(number: number, of: number): boolean {
  return Boolean(process.env.TEST_SLOW) || number % of === 0;
}

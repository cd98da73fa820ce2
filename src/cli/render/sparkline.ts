/** A row of small bars, one for each number, with a gap for null. Only zero has the lowest bar. */

const bars = '▁▂▃▄▅▆▇█';

export function sparkline(numbers: (number | null)[], highest: number): string {
  return numbers.map((number) => (number === null ? ' ' : barOf(number, highest))).join('');
}

function barOf(number: number, highest: number): string {
  if (number <= 0 || highest <= 0) return bars[0]!;
  return bars[Math.min(Math.ceil((number / highest) * (bars.length - 1)), bars.length - 1)]!;
}

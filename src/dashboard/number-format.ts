/** Formats numbers and times for people. Pure functions: the current time is a parameter. */
import { iso } from '../base/clock.ts';

const numbers = new Intl.NumberFormat('en-GB');

/** 1,234,567 */
export function count(value: number): string {
  return numbers.format(value);
}

/** `12.3%`. A share above 0 is never shown as `0%`. */
export function percent(share: number): string {
  if (share > 0 && share < 0.0001) return '< 0.01%';
  const digits = share < 0.01 ? 2 : 1;
  return `${(share * 100).toFixed(digits).replace(/\.0+$/, '')}%`;
}

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

/** A duration: `230 ms`, `4.2 s`, `3 minutes`, `2 hours`. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${Math.floor(ms / 100) / 10} s`;
  const [unit, size] = units.find(([, each]) => ms >= each)!;
  const whole = Math.floor(ms / size);
  return `${whole} ${unit}${whole === 1 ? '' : 's'}`;
}

/** A duration rounded up to a tenth of its unit, for what was done within it: `1.1 hours`. */
export function atMost(ms: number): string {
  if (ms < 1000) return `${Math.ceil(ms / 10) * 10} ms`;
  if (ms < 60_000) return `${Math.ceil(ms / 100) / 10} s`;
  const [unit, size] = units.find(([, each]) => ms >= each)!;
  const tenths = Math.ceil((ms / size) * 10) / 10;
  return `${tenths} ${unit}${tenths === 1 ? '' : 's'}`;
}

/** `just now`, `3 minutes ago`, `in 2 hours`. */
export function relative(time: number, now: number): string {
  const distance = Math.abs(time - now);
  if (distance < 60_000) return 'just now';
  return time < now ? `${span(distance)} ago` : `in ${span(distance)}`;
}

/** `2026-03-02 08:15:30 UTC` */
export function exactly(time: number): string {
  return `${iso(time).slice(0, 19).replace('T', ' ')} UTC`;
}

/** Browser and system of a User-Agent header, such as `Firefox on Linux`. */
export function agentName(agent: string): string {
  const browsers = [
    ['Edge', /Edg(e|A|iOS)?\//],
    ['Opera', /OPR\//],
    ['Firefox', /(Firefox|FxiOS)\//],
    ['Chrome', /(Chrome|CriOS)\//],
    ['Safari', /Safari\//],
  ] as const;
  const systems = [
    ['Android', /Android/],
    ['iPhone', /iPhone/],
    ['iPad', /iPad/],
    ['Windows', /Windows/],
    ['macOS', /Mac OS X/],
    ['Linux', /Linux/],
  ] as const;
  const browser = browsers.find(([, pattern]) => pattern.test(agent))?.[0];
  const system = systems.find(([, pattern]) => pattern.test(agent))?.[0];
  if (!browser && !system) return agent.slice(0, 40) || 'Unknown';
  return [browser, system].filter(Boolean).join(' on ');
}

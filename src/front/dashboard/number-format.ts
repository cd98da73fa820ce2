/** Formats numbers and times for people. */
import { iso } from '#platform/base/clock.ts';

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

/** `2026-03-02 08:15:30 UTC` */
export function exactly(time: number): string {
  return `${iso(time).slice(0, 19).replace('T', ' ')} UTC`;
}

/** `2 Mar` */
export function dayOf(time: number): string {
  return new Date(time).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });
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

/**
 * The rate-limit headers that every answer carries (docs/api.md section 8), and the IETF's fields beside them
 * (draft-ietf-httpapi-ratelimit-headers). They describe the window that binds; where nothing limits they say so.
 */
import type { Context } from 'koa';
import { bindingWindow, type Window } from '../accounts/limits.ts';

const unlimited = 2_147_483_647;
const lengths = { second: 1, day: 86_400, guesses: 60, room: 1 };

/** A window of the organization's, that of a client's failed keys, or the room that there is for sends. */
export type RateWindow = Omit<Window, 'name'> & { name: keyof typeof lengths };

export function setRateHeaders(context: Context, windows: RateWindow[]): void {
  const binding = bindingWindow(windows as Window[]);
  context.set('X-RateLimit-Limit', String(binding?.limit ?? unlimited));
  context.set('X-RateLimit-Remaining', String(binding?.remaining ?? unlimited));
  context.set('X-RateLimit-Reset', String(binding ? seconds(binding.resetMs) : 0));
  if (windows.length === 0) return;
  context.set(
    'RateLimit-Policy',
    windows.map(({ name, limit }) => `"${name}";q=${limit};w=${lengths[name]}`).join(', '),
  );
  context.set(
    'RateLimit',
    windows
      .map(({ name, remaining, resetMs }) => `"${name}";r=${remaining};t=${seconds(resetMs)}`)
      .join(', '),
  );
}

/** Whole seconds, never too early. */
export function seconds(ms: number): number {
  return Math.max(Math.ceil(ms / 1000), 1);
}

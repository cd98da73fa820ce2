/**
 * The rate-limit headers of every response (docs/api.md section 8), and those of draft-ietf-httpapi-ratelimit-headers.
 * The former describe the window that limits the caller most, or say that nothing limits.
 */
import type { Context } from 'koa';
import { bindingWindow, type Window } from '#accounts/limits.ts';

const unlimited = 2_147_483_647;
const lengths = { second: 1, day: 86_400, 'failed-keys': 60, capacity: 1 };

/** A request window of the organization, the window of a client's failed keys, or the server's capacity for calls. */
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

/** Rounds up, so that a client never retries too early. */
export function seconds(ms: number): number {
  return Math.max(Math.ceil(ms / 1000), 1);
}

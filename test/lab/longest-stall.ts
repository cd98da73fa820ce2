/** The longest time that the event loop of this thread stood still during `action`, in milliseconds of processor time. */
import { threadMs } from './thread-time.ts';

const intervalMs = 5;

export async function longestStall(action: () => Promise<unknown>): Promise<number> {
  let [longest, last] = [0, threadMs()];
  const look = () => {
    longest = Math.max(longest, threadMs() - last);
    last = threadMs();
  };
  const timer = setInterval(look, intervalMs);
  try {
    await action();
    look();
  } finally {
    clearInterval(timer);
  }
  return longest;
}

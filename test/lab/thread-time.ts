/** How long this thread has computed, in milliseconds: other processes, and other threads of this one, do not count. */
export function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
